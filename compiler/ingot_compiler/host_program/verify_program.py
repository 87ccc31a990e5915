"""Checks that an instruction list is well formed: what its machine code, and whoever steps it, may
rely on.

In: a ``Program``; what it may name outside of itself, where that is known. Out: nothing, or
``InternalError`` that names the instruction.
Not done here: addresses and sizes, which are known only while it runs; bytes of a bundle
(``ingot_runtime.format.program_decode``).

Registers, buffers, messages and labels exist; sizes are told before ``begin`` and used behind it;
no path runs off the end; buffers are defined, and used on the device where they lie; kernels,
inputs, outputs and devices are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingot_compiler.ir.problem import Problem, require_none
from ingot_runtime.format.dtypes import DTYPE_NAMES
from ingot_runtime.format.program import OPCODES, Instruction, Program, operand_kinds

BEFORE_BEGIN = ("input_dim", "workspace_bytes", "scratch_bytes")
BEHIND_BEGIN = ("launch", "launch_checked", "copy", "read", "output_buffer", "buffer_grow")
ENDS = ("return", "jump", "branch")
HOST_BUFFERS = ("buffer_input", "buffer_output", "buffer_weights")
DEVICE_BUFFERS = ("buffer_workspace", "buffer_grow", "buffer_device_weights")
LAUNCHES = ("launch", "launch_checked")
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """What a program may name: ranks of inputs and outputs; for each device, how many kernels its
    library has."""

    input_ranks: tuple[int, ...]
    output_ranks: tuple[int, ...]
    kernel_counts: tuple[int, ...]


def verify_program(program: Program, context: ProgramContext | None = None) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_program_problems(program, context), "instruction", "program", "program")


def find_program_problems(
    program: Program, context: ProgramContext | None = None
) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    for index, instruction in enumerate(program.instructions):
        yield from _operands(program, index, instruction)
    names = [OPCODES[opcode][0] for opcode, _ in program.instructions]
    if names[-1:] == [] or names[-1] not in ENDS:
        got = names[-1] if names else "no instruction"
        yield Problem(
            (len(names) - 1,) if names else (), got, " or ".join(ENDS), got, "the last instruction"
        )
    yield from _order(names)
    yield from _devices(program)
    if context is not None:
        for index, instruction in enumerate(program.instructions):
            yield from _outside(index, instruction, context)


def _operands(program: Program, index: int, instruction: Instruction) -> Iterator[Problem]:
    """Registers, buffers and labels, and numbers whose range is known from the program alone."""
    opcode, operands = instruction
    name = OPCODES[opcode][0]
    counts = {
        "r": program.register_count,
        "b": program.buffer_count,
        "l": len(program.instructions),
    }
    what = {"r": "registers", "b": "buffers", "l": "labels"}
    for kind, operand in zip(operand_kinds(opcode), operands, strict=True):
        for number in operand if isinstance(operand, tuple) else (operand,):
            if kind[-1] in counts and not 0 <= number < counts[kind[-1]]:
                yield Problem(
                    (index,), name, f"0 to {counts[kind[-1]] - 1}", str(number), what[kind[-1]]
                )
            elif number not in _INT64:
                yield Problem((index,), name, "a number of 64 bits", str(number), "immediates")
    numbers = {"assert": operands[1:2], "launch_checked": operands[-1:]}.get(name, ())
    for message in _flat(numbers):
        if not 0 <= message < len(program.messages):
            yield Problem(
                (index,), name, f"0 to {len(program.messages) - 1}", str(message), "messages"
            )
    if name == "read" and not 0 <= _number(operands[3]) < len(DTYPE_NAMES):
        yield Problem(
            (index,), name, f"0 to {len(DTYPE_NAMES) - 1}", str(operands[3]), "element types"
        )
    if name in LAUNCHES and _number(operands[6]) < 1:
        yield Problem((index,), name, "at least 1", str(operands[6]), "units worth a thread")


def _order(names: Sequence[str]) -> Iterator[Problem]:
    if names.count("begin") != 1:
        yield Problem(
            (),
            "program",
            "one begin",
            str(names.count("begin")),
            "sizes are told before begin, once",
        )
        return
    begin = names.index("begin")
    for index, name in enumerate(names):
        if (name in BEFORE_BEGIN and index > begin) or (name in BEHIND_BEGIN and index < begin):
            side = "before" if name in BEFORE_BEGIN else "behind"
            yield Problem(
                (index,),
                name,
                f"{side} begin",
                f"begin is instruction {begin}",
                "sizes are told before begin, once",
            )


def _devices(program: Program) -> Iterator[Problem]:
    """That each buffer is defined, on one device, and used there."""
    places: dict[int, int] = {}
    for index, (opcode, operands) in enumerate(program.instructions):
        name = OPCODES[opcode][0]
        if name in HOST_BUFFERS or name in DEVICE_BUFFERS:
            device = 0 if name in HOST_BUFFERS else _number(operands[1])
            buffer = _number(operands[0])
            if places.setdefault(buffer, device) != device:
                yield Problem(
                    (index,),
                    name,
                    f"b{buffer} on device {places[buffer]}",
                    f"device {device}",
                    "a buffer has one device",
                )
    for index, (opcode, operands) in enumerate(program.instructions):
        for buffer, device in _uses(OPCODES[opcode][0], operands):
            if buffer not in places:
                yield Problem(
                    (index,),
                    OPCODES[opcode][0],
                    "a buffer that some instruction defines",
                    f"b{buffer}",
                    "buffers",
                )
            elif places[buffer] != device:
                got = f"b{buffer} on device {places[buffer]}"
                yield Problem(
                    (index,),
                    OPCODES[opcode][0],
                    f"buffers of device {device}",
                    got,
                    "a buffer is used on its device",
                )


def _uses(name: str, operands: tuple[int | tuple[int, ...], ...]) -> Iterator[tuple[int, int]]:
    """(buffer, device) of what an instruction reads or writes."""
    if name in LAUNCHES:
        yield from ((buffer, _number(operands[0])) for buffer in _flat(operands[3:4]))
    elif name == "copy":
        source, target, to, from_ = map(_number, operands[:4])
        yield from ((to, target), (from_, source))
    elif name in ("read", "output_buffer"):
        yield _number(operands[1]), 0


def _outside(index: int, instruction: Instruction, context: ProgramContext) -> Iterator[Problem]:
    """Inputs, outputs, devices and kernels."""
    opcode, operands = instruction
    name = OPCODES[opcode][0]
    devices = len(context.kernel_counts)
    # (what, number, count) of each
    named: list[tuple[str, int, int]] = []
    if name in ("input_dim", "output_dim"):
        ranks, at = (context.input_ranks, 1) if name == "input_dim" else (context.output_ranks, 0)
        tensor = _number(operands[at])
        named = [(f"{name[:-4]}s", tensor, len(ranks))]
        if tensor < len(ranks):
            named.append(("axes", _number(operands[at + 1]), ranks[tensor]))
    elif name in ("buffer_input", "buffer_output", "output_buffer"):
        inputs = name == "buffer_input"
        ranks = context.input_ranks if inputs else context.output_ranks
        named = [
            (
                "inputs" if inputs else "outputs",
                _number(operands[0 if name == "output_buffer" else 1]),
                len(ranks),
            )
        ]
    elif name in DEVICE_BUFFERS:
        named = [("devices", _number(operands[1]), devices)]
    elif name == "workspace_bytes":
        named = [("devices", _number(operands[0]), devices)]
    elif name == "copy":
        named = [("devices", _number(operand), devices) for operand in operands[:2]]
    elif name in LAUNCHES:
        device = _number(operands[0])
        named = [("devices", device, devices)]
        if 0 <= device < devices:
            named.append(
                (f"kernels of device {device}", _number(operands[1]), context.kernel_counts[device])
            )
    for what, number, count in named:
        if not 0 <= number < count:
            yield Problem((index,), name, f"0 to {count - 1}", str(number), what)


def _number(operand: int | tuple[int, ...]) -> int:
    assert isinstance(operand, int)
    return operand


def _flat(operands: Sequence[int | tuple[int, ...]]) -> Iterator[int]:
    for operand in operands:
        yield from operand if isinstance(operand, tuple) else (operand,)
