"""The text of a PTX module, taken apart.

In: PTX as LLVM writes it. Out: ``PtxModule``: kernels, their instructions, tables. Not done here:
running it (``grid``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_VARIABLE = re.compile(
    r"(?:\.visible )?\.(global|shared|local) \.align (\d+) \.b(\d+)\s+([\w$]+)\[(\d+)\](?: = \{(.*)\})?;"
)
_REGISTERS = re.compile(r"\.reg \.(pred|b\d+) \s*([%\w]+)(?:<(\d+)>)?;")
_HIGH_WORD = re.compile(r"\{ \.reg \.b(\d+) tmp; mov\.b(\d+) \{tmp, (%\w+)\}, (%\w+); \}")
_BITS = {"pred": 1}


class PtxError(Exception):
    """A module that is none, or a program that does what a GPU would not."""


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """``guard``: the predicate under which it runs, with ``!`` where it must not hold; operands
    without brackets, those in braces as they are."""

    guard: str
    opcode: tuple[str, ...]
    operands: tuple[str, ...]
    text: str


@dataclass(slots=True)
class PtxKernel:
    """``labels``: the instruction that each stands before. Sizes in bytes; ``places``: where each
    variable of shared and local memory lies."""

    name: str
    parameters: list[str] = field(default_factory=list[str])
    registers: dict[str, int] = field(default_factory=dict[str, int])
    instructions: list[PtxInstruction] = field(default_factory=list[PtxInstruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    places: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    sizes_bytes: dict[str, int] = field(default_factory=lambda: {"shared": 0, "local": 0})


@dataclass(slots=True)
class PtxModule:
    """``tables``: the bytes of each global variable."""

    version: tuple[int, int]
    target: str
    kernels: dict[str, PtxKernel] = field(default_factory=dict[str, PtxKernel])
    tables: dict[str, bytes] = field(default_factory=dict[str, bytes])


def read_ptx(text: str) -> PtxModule:
    """Read a module.

    Raises:
        PtxError: a line that is not understood.
    """
    head = re.match(r"\.version (\d+)\.(\d+)\n\.target (sm_\d+)\n\.address_size 64\n", text)
    if head is None:
        raise PtxError(f"no head of a module: {text[:60]!r}")
    module = PtxModule((int(head[1]), int(head[2])), head[3])
    kernel: PtxKernel | None = None
    in_parameters = False
    lines = map(str.strip, text[head.end() :].splitlines())
    for number, line in enumerate(lines, start=4):
        entry = re.fullmatch(r"\.visible \.entry (\w+)\(", line)
        if entry:
            kernel, in_parameters = PtxKernel(entry[1]), True
        elif in_parameters and kernel:
            in_parameters = _parameter(kernel, line)
        elif line == "}" and kernel:
            module.kernels[kernel.name] = kernel
            kernel = None
        elif line not in ("", "{") and not _part(module, kernel, line):
            raise PtxError(f"line {number} is not understood: {line}")
    return module


def _parameter(kernel: PtxKernel, line: str) -> bool:
    """Whether more of them follow."""
    if line == ")":
        return False
    found = re.fullmatch(r"\.param \.u64 (?:\.ptr \.align 1 )?(\w+),?", line)
    if found is None:
        raise PtxError(f"a parameter that is not understood: {line}")
    kernel.parameters.append(found[1])
    return True


def _part(module: PtxModule, kernel: PtxKernel | None, line: str) -> bool:
    """Read one line; return whether it was understood."""
    variable, registers = _VARIABLE.fullmatch(line), _REGISTERS.fullmatch(line)
    if variable:
        _declare(module, kernel, variable)
    elif kernel and registers:
        _declare_registers(kernel, registers)
    elif kernel and re.fullmatch(r"[$\w]+:", line):
        kernel.labels[line[:-1]] = len(kernel.instructions)
    elif kernel and (line.endswith(";") or _HIGH_WORD.fullmatch(line)):
        kernel.instructions.append(_instruction(line))
    else:
        return False
    return True


def _declare(module: PtxModule, kernel: PtxKernel | None, found: re.Match[str]) -> None:
    space, align, bits, name, count, values = found.groups()
    size = int(bits) // 8 * int(count)
    if space == "global":
        numbers = [int(text, 0) for text in values.split(",")] if values else []
        width = int(bits) // 8
        content = b"".join((n % (1 << 8 * width)).to_bytes(width, "little") for n in numbers)
        module.tables[name] = content.ljust(size, b"\0")
        return
    if kernel is None:
        raise PtxError(f"a variable outside of a kernel: {found[0]}")
    at = -(-kernel.sizes_bytes[space] // int(align)) * int(align)
    kernel.places[name] = (space, at)
    kernel.sizes_bytes[space] = at + size


def _declare_registers(kernel: PtxKernel, found: re.Match[str]) -> None:
    bits = _BITS.get(found[1]) or int(found[1][1:])
    count = found[3]
    names = [f"{found[2]}{n}" for n in range(int(count))] if count else [found[2]]
    kernel.registers.update(dict.fromkeys(names, bits))


def _instruction(line: str) -> PtxInstruction:
    high = _HIGH_WORD.fullmatch(line)
    if high:
        operands = (f"{{_, {high[3]}}}", high[4])
        return PtxInstruction("", ("mov", f"b{high[2]}"), operands, line)
    found = re.fullmatch(r"(?:@(!?%\w+) +)?([\w.]+)\s*(.*);", line)
    if found is None:
        raise PtxError(f"an instruction that is not understood: {line}")
    return PtxInstruction(
        found[1] or "", tuple(found[2].split(".")), tuple(_operands(found[3])), line
    )


def _operands(text: str) -> list[str]:
    parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text)
    return [part[1:-1] if part.startswith("[") else part for part in parts]
