"""How much stack a model needs on a processor of 32 bits, from its text: before any compiler.

In: texts of kernels as ``kernel_text`` writes them, who calls them. Out: bytes: of a kernel its
arrays, and as many numbers as are live at once. Not done here: what a compiler really takes, which is less where numbers stay
in registers (tests compare); other processors.

A number is live from the line that makes it to the last that reads it, and where that is in a loop
that it was made before, to the end of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ingot_compiler.backends.c.straight_line import CalledKernel, StraightLine
from ingot_runtime.lazy_dataclass import dataclass

CALL_BYTES = 128
"""What a function saves: eight registers of the processor and eight of its floats, and arguments."""
_RUN_TIME_BYTES = 96  # of functions of the compiler's: divisions of 64 bits, f64
_WORD_BYTES = 4
_WIDE = ("int64_t", "uint64_t", "double")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_MADE = re.compile(r"  (?:const )?([\w ]+?[ *](?:const )?)(\w+) = ")
_CARRIED = re.compile(r"  (\w+) (\w+), \2_next;$")
_ARRAY = re.compile(r"  (\w+) \w+\[(\d+)\]")
_LABEL = re.compile(r"(\w+): ;$")
_GOTO = re.compile(r"goto (\w+);")
_SIZES_BYTES = {"unsigned char": 1, "int8_t": 1, "int16_t": 2, **dict.fromkeys(_WIDE, 8)}


def call_stack_need(line: StraightLine, kernels: Sequence[str]) -> int:
    """Return the bytes that ``MODEL_run`` needs with the kernel that needs most."""
    needs = {number: stack_need(kernels[number]) for number in {c.kernel for c in line.calls}}
    return max((needs[call.kernel] + _call_bytes(call) for call in line.calls), default=CALL_BYTES)


def _call_bytes(call: CalledKernel) -> int:
    """What a call passes, what the caller saves, and what is called in the kernel."""
    pointers, numbers = len(call.buffers) + 1, len(call.scalars) + 2
    return CALL_BYTES + _RUN_TIME_BYTES + _WORD_BYTES * (pointers + 2 * numbers)


@dataclass(slots=True)
class _Live:
    """A number: its bytes, the lines of its first and its last name."""

    size_bytes: int
    first: int
    last: int


def stack_need(text: str) -> int:
    """Return the bytes that a kernel needs at most, saved registers among them."""
    lines = text.split("\n")
    numbers = _numbers(lines)
    for start, end in _loops(lines):
        for number in numbers:
            if number.first < start <= number.last < end:
                number.last = end
    changes = [0] * (len(lines) + 1)
    for number in numbers:
        changes[number.first] += number.size_bytes
        changes[number.last] -= number.size_bytes
    return CALL_BYTES + sum(map(_array_bytes, lines)) + max(accumulate(changes))


def _numbers(lines: Sequence[str]) -> list[_Live]:
    """Those that the lines make and read."""
    found: dict[str, _Live] = {}
    for at, line in enumerate(lines):
        if made := _MADE.match(line):
            size_bytes = 8 if made[1].split()[0] in _WIDE else _WORD_BYTES
            found.setdefault(made[2], _Live(size_bytes, at, at))
        elif carried := _CARRIED.match(line):
            size_bytes = 8 if carried[1] in _WIDE else _WORD_BYTES
            found[carried[2]] = _Live(size_bytes, len(lines), 0)
        else:
            for name in _NAME.findall(line):
                _extend(found, name, at)
            continue
        for name in _NAME.findall(line)[1:]:
            _extend(found, name, at)
    return [number for number in found.values() if number.first < number.last]


def _extend(found: dict[str, _Live], name: str, at: int) -> None:
    if number := found.get(name.removesuffix("_next")):
        number.first, number.last = min(number.first, at), max(number.last, at)


def _loops(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(first, last) line of each loop, inner ones first."""
    labels: dict[str, int] = {}
    for at, line in enumerate(lines):
        if label := _LABEL.match(line):
            labels[label[1]] = at
        for target in _GOTO.findall(line):
            if target in labels:
                yield labels[target], at


def _array_bytes(line: str) -> int:
    """The bytes of an array that a line declares."""
    found = _ARRAY.match(line)
    return int(found[2]) * _SIZES_BYTES.get(found[1], _WORD_BYTES) if found else 0
