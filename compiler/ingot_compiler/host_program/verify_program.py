"""Checks that an instruction list is well formed: what its machine code, and whoever steps it, may
rely on.

In: a ``Program``; what it may name outside of itself, where that is known. Out: nothing, or
``InternalError`` that names the instruction. Not done here: addresses and sizes, which are known
only while it runs; bytes of a bundle (``ingot_runtime.format.program_decode``).

Registers, buffers, messages and labels exist; sizes are told before ``begin`` and used behind it;
no path runs off the end; buffers are defined, and used on the device where they lie; kernels,
inputs, outputs and devices are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.problem import Part, Problem, require_none
from ingot_runtime.format.dtypes import DTYPE_NAMES
from ingot_runtime.format.program import OPCODES, Instruction, Program, operand_kinds
from ingot_runtime.lazy_dataclass import dataclass

Operand = int | tuple[int, ...]
COPIES = ("copy", "begin_copy", "end_copy")
BEFORE_BEGIN = ("input_dim", "workspace_bytes", "scratch_bytes")
BEHIND_BEGIN = (
    "launch", "launch_checked", *COPIES, "read", "output_buffer", "buffer_grow", "held_bytes",
)  # fmt: skip
ENDS = ("return", "jump", "branch")
HOST_BUFFERS = ("buffer_input", "buffer_output", "buffer_weights")
DEVICE_BUFFERS = ("buffer_workspace", "buffer_grow", "buffer_device_weights")
LAUNCHES = ("launch", "launch_checked")
_MESSAGES = {"assert": slice(1, 2), "launch_checked": slice(-1, None)}
"""Instruction -> the operands that are numbers of messages."""
_TENSORS = {
    "input_dim": ("inputs", 1),
    "output_dim": ("outputs", 0),
    "buffer_input": ("inputs", 1),
    "buffer_output": ("outputs", 1),
    "output_buffer": ("outputs", 0),
}
"""Instruction -> which tensors it names, and by which operand."""
_DEVICES = {
    **dict.fromkeys(DEVICE_BUFFERS, (1,)),
    **dict.fromkeys((*LAUNCHES, "workspace_bytes"), (0,)),
    **dict.fromkeys(COPIES, (0, 1)),
}
"""Instruction -> the operands that name devices."""
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
    part = Part((index,), OPCODES[opcode][0])
    named = {
        "r": ("registers", program.register_count),
        "b": ("buffers", program.buffer_count),
        "l": ("labels", len(program.instructions)),
    }
    for kind, operand in zip(operand_kinds(opcode), operands, strict=True):
        for number in _flat((operand,)):
            if kind[-1] in named and number not in range(named[kind[-1]][1]):
                what, count = named[kind[-1]]
                yield part.problem(f"0 to {count - 1}", str(number), what)
            elif number not in _INT64:
                yield part.problem("a number of 64 bits", str(number), "immediates")
    yield from _ranges(program, part, operands)


def _ranges(program: Program, part: Part, operands: Sequence[Operand]) -> Iterator[Problem]:
    """Operands that are numbers of something beside registers, buffers and labels."""
    numbers = _MESSAGES.get(part.name, slice(0))
    for message in _flat(operands[numbers]):
        yield from _in_range(part, message, len(program.messages), "messages")
    if part.name == "read":
        yield from _in_range(part, _number(operands[3]), len(DTYPE_NAMES), "element types")
    if part.name in LAUNCHES and _number(operands[6]) < 1:
        yield part.problem("at least 1", str(operands[6]), "units worth a thread")


def _in_range(part: Part, number: int, count: int, what: str) -> Iterator[Problem]:
    if not 0 <= number < count:
        yield part.problem(f"0 to {count - 1}", str(number), what)


def _order(names: Sequence[str]) -> Iterator[Problem]:
    rule = "sizes are told before begin, once"
    if names.count("begin") != 1:
        yield Problem((), "program", "one begin", str(names.count("begin")), rule)
        return
    begin = names.index("begin")
    for index, name in enumerate(names):
        if (name in BEFORE_BEGIN and index > begin) or (name in BEHIND_BEGIN and index < begin):
            side = "before" if name in BEFORE_BEGIN else "behind"
            got = f"begin is instruction {begin}"
            yield Problem((index,), name, f"{side} begin", got, rule)


def _devices(program: Program) -> Iterator[Problem]:
    """That each buffer is defined, on one device, and used there. What runs nothing and takes no
    copies is memory of the host: a pool."""
    places: dict[int, int] = {}
    named = [(OPCODES[opcode][0], operands) for opcode, operands in program.instructions]
    active = {
        _number(operands[position])
        for name, operands in named
        if name in LAUNCHES or name in COPIES
        for position in _DEVICES[name]
    }
    for index, (name, operands) in enumerate(named):
        if name in HOST_BUFFERS or name in DEVICE_BUFFERS:
            device = 0 if name in HOST_BUFFERS else _number(operands[1])
            device = device if device in active else 0
            buffer = _number(operands[0])
            if (place := places.setdefault(buffer, device)) != device:
                expected = f"b{buffer} on device {place}"
                rule = "a buffer has one device"
                yield Problem((index,), name, expected, f"device {device}", rule)
    for index, (name, operands) in enumerate(named):
        for buffer, device in _uses(name, operands):
            yield from _use(Part((index,), name), buffer, device, places.get(buffer))


def _use(part: Part, buffer: int, device: int, place: int | None) -> Iterator[Problem]:
    """That a buffer that is used on ``device`` lies there; ``place``: its device, if it has
    one."""
    if place is None:
        yield part.problem("a buffer that some instruction defines", f"b{buffer}", "buffers")
    elif place != device:
        got = f"b{buffer} on device {place}"
        yield part.problem(f"buffers of device {device}", got, "a buffer is used on its device")


def _uses(name: str, operands: Sequence[Operand]) -> Iterator[tuple[int, int]]:
    """(buffer, device) of what an instruction reads or writes."""
    if name in LAUNCHES:
        yield from ((buffer, _number(operands[0])) for buffer in _flat(operands[3:4]))
    elif name in COPIES:
        source, target, to, from_ = map(_number, operands[:4])
        yield from ((to, target), (from_, source))
    elif name in ("read", "output_buffer"):
        yield _number(operands[1]), 0


def _outside(index: int, instruction: Instruction, context: ProgramContext) -> Iterator[Problem]:
    """Inputs, outputs, devices and kernels."""
    opcode, operands = instruction
    name = OPCODES[opcode][0]
    for what, number, count in _named(name, operands, context):
        yield from _in_range(Part((index,), name), number, count, what)


def _named(
    name: str, operands: Sequence[Operand], context: ProgramContext
) -> Iterator[tuple[str, int, int]]:
    """(what, its number, how many there are) of what an instruction names outside of the
    program."""
    if name in _TENSORS:
        what, position = _TENSORS[name]
        ranks = context.input_ranks if what == "inputs" else context.output_ranks
        tensor = _number(operands[position])
        yield what, tensor, len(ranks)
        if name in ("input_dim", "output_dim") and tensor < len(ranks):
            yield "axes", _number(operands[position + 1]), ranks[tensor]
    if name == "held_bytes":
        yield "inputs", _number(operands[1]), len(context.input_ranks)
        yield "outputs", _number(operands[2]), len(context.output_ranks)
    devices = [_number(operands[position]) for position in _DEVICES.get(name, ())]
    counts = context.kernel_counts
    for device in devices:
        yield "devices", device, len(counts)
    if name in LAUNCHES and 0 <= devices[0] < len(counts):
        yield f"kernels of device {devices[0]}", _number(operands[1]), counts[devices[0]]


def _number(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


def _flat(operands: Sequence[Operand]) -> Iterator[int]:
    for operand in operands:
        yield from operand if isinstance(operand, tuple) else (operand,)
