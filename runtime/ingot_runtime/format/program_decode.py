"""The instruction list read back, every index checked: FORMAT.md, "Program".

In: bytes of a program section, and what its indices may reach. Out: a ``Program`` in which all that
is named exists, and buffers lie where they are used. Not done here: addresses and sizes
(``executor.vm`` checks each).
"""

from .checks import require, unknown
from .dtypes import DTYPE_NAMES
from .limits import (
    BUFFER_COUNT_MAX,
    INSTRUCTION_COUNT_MAX,
    RANK_MAX,
    REGISTER_COUNT_MAX,
    SIZE_BYTES_MAX,
)
from .plan import BundlePlan, VariantPlan
from .program import OPCODES, Instruction, Program, operand_kinds
from .schema import Reader

_INT64_MAX = (1 << 63) - 1
_OPCODE_MAX = (1 << 31) - 1
_KINDS = tuple(tuple(operand_kinds(opcode)) for opcode in range(len(OPCODES)))
_EARLY_COPIES = ("begin_copy", "end_copy")
_COPIES = ("copy", *_EARLY_COPIES)
_HOST_BUFFERS = ("buffer_input", "buffer_output", "buffer_weights")
_DEVICE_BUFFERS = ("buffer_workspace", "buffer_grow", "buffer_device_weights")
_LAUNCHES = ("launch", "launch_checked")
_TERMINATORS = ("return", "jump", "branch")


def decode_program(
    data: bytes, plan: BundlePlan, variant: VariantPlan, weights_bytes: tuple[int, ...], where: str
) -> Program:
    """Decode and check the program section of `variant`; ``weights_bytes``: of each device's
    section. A ``FormatError`` names the instruction."""
    words = Reader(data, where)
    count = words.word("instruction count", 1, INSTRUCTION_COUNT_MAX)
    registers = words.word("register count", 0, REGISTER_COUNT_MAX)
    buffers = words.word("buffer count", 0, BUFFER_COUNT_MAX)
    raw = tuple(_instruction(words, f"{where}, instruction {index}") for index in range(count))
    messages = words.texts("message", INSTRUCTION_COUNT_MAX)
    words.finish()
    limits = {
        "r": registers, "b": buffers, "l": count, "message": len(messages), "axis": RANK_MAX,
        "device": len(plan.devices), "input": len(plan.inputs), "output": len(plan.outputs),
        "dtype": len(DTYPE_NAMES), "size": SIZE_BYTES_MAX, "offset": SIZE_BYTES_MAX,
    }  # fmt: skip
    for index, instruction in enumerate(raw):
        at = f"{where}, instruction {index}"
        _check_operands(instruction, limits, at)
        _check_place(instruction, plan, weights_bytes, at)
    _check_devices(raw, plan, plan.kernel_counts(variant), where)
    last = OPCODES[raw[-1][0]][0]
    require(last in _TERMINATORS, "program runs off its end", where, f"last instruction is {last}")
    return Program(raw, registers, buffers, messages)


def _instruction(words: Reader, where: str) -> Instruction:
    opcode = words.word("opcode", 0, _OPCODE_MAX)
    if opcode >= len(OPCODES):
        raise unknown(f"opcode {opcode}", where)
    operands: list[int | tuple[int, ...]] = []
    for kind in _KINDS[opcode]:
        if kind[0] == "*":
            count = words.word("operand count", 0, BUFFER_COUNT_MAX)
            operands.append(words.words("operands", count))
        else:
            operands += words.words("operand", 1)
    return opcode, tuple(operands)


def _check_operands(instruction: Instruction, limits: dict[str, int], where: str) -> None:
    """Check each operand against the count of what it is an index into."""
    opcode, operands = instruction
    name = OPCODES[opcode][0]
    meanings = iter(OPCODES[opcode][2].split())
    for kind, operand in zip(_KINDS[opcode], operands, strict=True):
        meaning = next(meanings) if kind[-1] == "i" else kind[-1]
        for value in operand if isinstance(operand, tuple) else (operand,):
            if meaning == "positive":
                require(1 <= value <= _INT64_MAX, f"{name}: grain out of range", where, str(value))
            elif meaning == "dtype" and _OPCODE_MAX >= value >= limits[meaning]:
                raise unknown(f"dtype {value}", where)
            elif meaning != "-":
                why = f"expected 0 to {limits[meaning] - 1}, got {value}"
                require(0 <= value < limits[meaning], f"{name}: {meaning} out of range", where, why)


def _check_place(
    instruction: Instruction, plan: BundlePlan, weights_bytes: tuple[int, ...], where: str
) -> None:
    """Check a range of the weights, and the axis of an input or output."""
    name, operands = OPCODES[instruction[0]][0], instruction[1]
    if name in ("buffer_weights", "buffer_device_weights"):
        offset, size_bytes = _number(operands[-2]), _number(operands[-1])
        limit_bytes = weights_bytes[0 if name == "buffer_weights" else _number(operands[1])]
        why = f"{size_bytes} bytes at {offset} of {limit_bytes}"
        require(
            offset <= limit_bytes and size_bytes <= limit_bytes - offset,
            "weights out of range",
            where,
            why,
        )
    if name in ("input_dim", "output_dim"):
        first = 1 if name == "input_dim" else 0
        tensor, axis = _number(operands[first]), _number(operands[first + 1])
        rank = len((plan.inputs if name == "input_dim" else plan.outputs)[tensor].dims)
        require(axis < rank, f"{name}: axis out of range", where, f"axis {axis} of rank {rank}")


def _number(operand: int | tuple[int, ...]) -> int:
    assert isinstance(operand, int)
    return operand


def _check_devices(
    raw: tuple[Instruction, ...], plan: BundlePlan, kernel_counts: tuple[int, ...], where: str
) -> None:
    """Check that launched kernels exist, and that buffers lie in the memory where they are used."""
    # All hosts have one memory, each other device one of its own.
    memories = [0 if device.kind == "host" else index for index, device in enumerate(plan.devices)]
    places = _memory_of_buffers(raw, memories, where)
    for index, (opcode, operands) in enumerate(raw):
        name, at = OPCODES[opcode][0], f"{where}, instruction {index}"
        if name in _LAUNCHES:
            device, kernel = _number(operands[0]), _number(operands[1])
            why = f"expected 0 to {kernel_counts[device] - 1}, got {kernel}"
            require(0 <= kernel < kernel_counts[device], f"{name}: kernel out of range", at, why)
            require(
                bool(operands[3]) or not memories[device], f"{name}: no scratch for the device", at
            )
        if name in _EARLY_COPIES:
            source, target = (memories[_number(operand)] for operand in operands[:2])
            why = f"from device {operands[0]} to device {operands[1]}"
            require((source == 0) != (target == 0), f"{name}: not between host and device", at, why)
        for buffer, memory in _used_buffers(name, operands, memories):
            found = places.get(buffer, memory)
            why = f"buffer {buffer} lies on device {found}, not {memory}"
            require(found == memory, f"{name}: buffer of another device", at, why)


def _memory_of_buffers(
    raw: tuple[Instruction, ...], memories: list[int], where: str
) -> dict[int, int]:
    """Return where each buffer that is defined lies; none may lie in two memories."""
    places: dict[int, int] = {}
    for index, (opcode, operands) in enumerate(raw):
        name = OPCODES[opcode][0]
        if name in _HOST_BUFFERS or name in _DEVICE_BUFFERS:
            memory = 0 if name in _HOST_BUFFERS else memories[_number(operands[1])]
            same = places.setdefault(_number(operands[0]), memory) == memory
            at, why = f"{where}, instruction {index}", f"buffer {operands[0]}"
            require(same, f"{name}: buffer of two devices", at, why)
    return places


def _used_buffers(
    name: str, operands: tuple[int | tuple[int, ...], ...], memories: list[int]
) -> list[tuple[int, int]]:
    """Return (buffer, memory in which it must lie) of an instruction."""
    if name in _LAUNCHES:
        buffers = operands[3]
        assert isinstance(buffers, tuple)
        return [(buffer, memories[_number(operands[0])]) for buffer in buffers]
    if name in _COPIES:
        source, target, to, from_ = map(_number, operands[:4])
        return [(to, memories[target]), (from_, memories[source])]
    return [(_number(operands[1]), 0)] if name in ("read", "output_buffer") else []
