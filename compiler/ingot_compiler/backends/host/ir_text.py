"""The text of one kernel in LLVM IR, taken apart: blocks, instructions, operands.

In: module text as ``writer`` leaves it. Out: ``IrFunction``. Not done here: what an instruction
means: back ends that write kernels in another form read them here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_runtime.lazy_dataclass import dataclass

_TYPE = re.compile(r"(?:<(\d+) x (\w+)>|(\w+))(?: |$)")
_ARRAY = re.compile(r"@(\w+) = private unnamed_addr constant \[\d+ x (\w+)\] \[(.*)\], align \d+$")
_SOURCE = re.compile(r"\[ (.+?), %(\w+) \]")


@dataclass(frozen=True, slots=True)
class Instruction:
    """``result = opcode rest``; ``result`` is "" where there is none."""

    result: str
    opcode: str
    rest: str


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions from ``label`` to a jump or a return."""

    label: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A table of numbers, as operands."""

    name: str
    element: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IrFunction:
    """The blocks of the one function of a module, its tables."""

    arrays: tuple[Array, ...]
    blocks: tuple[Block, ...]


def read_function(text: str) -> IrFunction:
    """Take the text of a module apart."""
    head, _, body = f"\n{text}".partition("\ndefine ")
    arrays = tuple(
        Array(found[1], found[2], tuple(part.split(" ", 1)[1] for part in found[3].split(", ")))
        for found in map(_ARRAY.match, head.splitlines())
        if found
    )
    return IrFunction(arrays, tuple(_blocks(body.splitlines()[1:])))


def reports(text: str) -> bool:
    """Whether the kernel of a module may return anything but 0."""
    return "ret i32 0\n" not in text


def without_arguments(text: str) -> str:
    """Return a module without the instructions by which its kernel finds buffers (``%b0``, ...) and
    scalars (``%s0``, ...): they are the parameters of a kernel of another form."""
    kept: list[str] = []
    for line in text.splitlines():
        if re.search(r"getelementptr \w+, ptr %(buffers|scalars), ", line):
            continue
        if line.startswith(("  %b", "  %s")) and line[4:5].isdigit():
            continue
        kept.append(line)
    return "\n".join([*kept, ""])


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    label, found = "", list[Instruction]()
    for line in lines:
        if line.startswith("  "):
            found.append(_instruction(line.strip()))
        elif line.endswith(":"):
            if label:
                yield Block(label, tuple(found))
            label, found = line[:-1], []
    yield Block(label, tuple(found))


def _instruction(line: str) -> Instruction:
    result, equals, rest = line.partition(" = ")
    if not equals or not result.startswith("%"):
        result, rest = "", line
    opcode, _, operands = rest.partition(" ")
    return Instruction(result, opcode, operands.partition(", !")[0])  # metadata advises LLVM alone


def parts(text: str) -> list[str]:
    """Split at commas that stand in no brackets."""
    found, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]


def typed(text: str) -> LlvmValue:
    """Read ``TYPE [align N] VALUE``."""
    found = _TYPE.match(text)
    assert found, text
    rest = re.sub(r"^align \d+ ", "", text[found.end() :])
    return LlvmValue(rest, found[2] or found[3], int(found[1] or 0))


def operands(text: str) -> list[LlvmValue]:
    """Read operands of which each has its type, or that of the first."""
    first, *others = parts(text)
    left = typed(first)
    return [left, *(_like(left, other) for other in others)]


def _like(first: LlvmValue, text: str) -> LlvmValue:
    if re.match(r"(<\d+ x \w+>|i\d+|float|double|half|ptr) ", text):
        return typed(text)
    return LlvmValue(text, first.element, first.lanes)


def phi_sources(text: str) -> tuple[LlvmValue, list[tuple[str, str]]]:
    """The type of a phi, as a value without text, and its (value, label) pairs."""
    kind = typed(text)
    return (
        LlvmValue("", kind.element, kind.lanes),
        [(found[1], found[2]) for found in _SOURCE.finditer(text)],
    )
