"""How much stack a model needs on a processor of 32 bits, from its statements: before any compiler.

In: statements of kernels, who calls them. Out: bytes: of a kernel its arrays, and as many numbers
as are live at once; ``CKernel``. Not done here: what a compiler really takes, which is less where
numbers stay in registers (tests compare); other processors.

A number is live from the line that makes it to the last that reads it, and where that is in a loop
that it was made before, to the end of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ingot_compiler.backends.c.straight_line import CalledKernel, StraightLine
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.c_text.scope import CStatement

CALL_BYTES = 128
"""What a function saves: eight registers of the processor and eight of its floats, and arguments."""
_RUN_TIME_BYTES = 96  # of functions of the compiler's: divisions of 64 bits, f64
_WORD_BYTES = 4
_WIDE = ("int64_t", "uint64_t", "double")
_SIZES_BYTES = {"int8_t": 1, "int16_t": 2, **dict.fromkeys(_WIDE, 8)}


@dataclass(frozen=True, slots=True)
class CKernel:
    """The text of a kernel, the name of its function, and the stack that a call needs at most."""

    symbol: str
    text: str
    stack_bytes: int

    @property
    def content(self) -> bytes:
        """What ``read_kernel`` reads."""
        return f"{self.stack_bytes}\n{self.text}".encode()


def read_kernel(symbol: str, content: bytes) -> CKernel:
    """Return the kernel of a ``content``."""
    stack_bytes, _, text = content.decode().partition("\n")
    return CKernel(symbol, text, int(stack_bytes))


def call_stack_need(line: StraightLine, kernels: Sequence[CKernel]) -> int:
    """Return the bytes that ``MODEL_run`` needs with the kernel that needs most."""
    needs = (kernels[call.kernel].stack_bytes + _call_bytes(call) for call in line.calls)
    return max(needs, default=CALL_BYTES)


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


def stack_need(lines: Sequence[CStatement]) -> int:
    """Return the bytes that a kernel needs at most, saved registers among them."""
    numbers = _numbers(lines)
    for start, end in _loops(lines):
        for number in numbers:
            if number.first < start <= number.last < end:
                number.last = end
    changes = [0] * (len(lines) + 1)
    for number in numbers:
        changes[number.first] += number.size_bytes
        changes[number.last] -= number.size_bytes
    arrays = sum(each.count * _SIZES_BYTES.get(each.type, _WORD_BYTES) for each in lines)
    return CALL_BYTES + arrays + max(accumulate(changes))


def _numbers(lines: Sequence[CStatement]) -> list[_Live]:
    """The numbers that the lines define and read, with their lifetimes."""
    found: dict[str, _Live] = {}
    for at, line in enumerate(lines):
        if line.type and not line.count:
            size_bytes = 8 if line.type in _WIDE else _WORD_BYTES
            found[line.makes] = _Live(size_bytes, at, at)
        for name in (line.makes, *line.reads):
            if name in found:
                found[name].last = at
    return list(found.values())


def _loops(lines: Sequence[CStatement]) -> Iterator[tuple[int, int]]:
    """(first, last) line of each loop, inner ones first."""
    labels: dict[str, int] = {}
    for at, line in enumerate(lines):
        if line.jumps in labels:
            yield labels[line.jumps], at
        if line.makes:
            labels[line.makes] = at
