"""The instruction list read back, every index checked: FORMAT.md, "Program".

In: bytes of a program section, and what its indices may reach. Out: a ``Program`` whose every register, buffer, label,
message, kernel, device, input and output exists. Not done here: addresses and sizes, which are known only
while it runs (``executor.vm`` checks each).
"""

from .checks import require
from .dtypes import DTYPE_NAMES
from .limits import (
    BUFFER_COUNT_MAX,
    INSTRUCTION_COUNT_MAX,
    RANK_MAX,
    REGISTER_COUNT_MAX,
    SIZE_BYTES_MAX,
)
from .plan import Plan
from .program import OPCODES, Instruction, Program, operand_kinds
from .words import Reader

_INT64_MAX = (1 << 63) - 1
_KINDS = tuple(tuple(operand_kinds(opcode)) for opcode in range(len(OPCODES)))
# What the immediates of an opcode count, in order; "" is any number.
_MEANINGS: dict[str, tuple[str, ...]] = {
    "const": ("",),
    "input_dim": ("input", "axis"),
    "assert": ("message",),
    "workspace_bytes": ("device",),
    "output_dim": ("output", "axis"),
    "buffer_input": ("input",),
    "buffer_output": ("output",),
    "buffer_weights": ("offset", "size"),
    "buffer_workspace": ("device",),
    "buffer_grow": ("device",),
    "launch": ("device", "kernel", "size", "positive"),
    "copy": ("device", "device"),
    "read": ("dtype",),
    "output_buffer": ("output",),
    "launch_checked": ("device", "kernel", "size", "positive", "message"),
}
_TERMINATORS = ("return", "jump", "branch")


def decode_program(data: bytes, plan: Plan, kernel_count: int, weights_bytes: int, where: str) -> Program:
    """Decode and check a program section.

    Raises:
        FormatError: naming the instruction.
    """
    words = Reader(data, where)
    count = words.word("instruction count", 1, INSTRUCTION_COUNT_MAX)
    registers = words.word("register count", 0, REGISTER_COUNT_MAX)
    buffers = words.word("buffer count", 0, BUFFER_COUNT_MAX)
    raw = tuple(_instruction(words) for _ in range(count))
    messages = tuple(words.text("message") for _ in range(words.word("message count", 0, INSTRUCTION_COUNT_MAX)))
    words.finish()
    limits = {
        "r": registers, "b": buffers, "l": count, "message": len(messages), "kernel": kernel_count, "axis": RANK_MAX,
        "device": len(plan.devices), "input": len(plan.inputs), "output": len(plan.outputs), "dtype": len(DTYPE_NAMES),
        "size": SIZE_BYTES_MAX, "offset": SIZE_BYTES_MAX,
    }  # fmt: skip
    for index, instruction in enumerate(raw):
        _check(instruction, limits, plan, weights_bytes, f"{where}, instruction {index}")
    last = OPCODES[raw[-1][0]][0]
    require(last in _TERMINATORS, "program runs off its end", where, f"last instruction is {last}")
    return Program(raw, registers, buffers, messages)


def _instruction(words: Reader) -> Instruction:
    opcode = words.word("opcode", 0, len(OPCODES) - 1)
    operands: list[int | tuple[int, ...]] = []
    for kind in _KINDS[opcode]:
        if kind[0] == "*":
            operands.append(words.words("operands", words.word("operand count", 0, BUFFER_COUNT_MAX)))
        else:
            operands += words.words("operand", 1)
    return opcode, tuple(operands)


def _check(instruction: Instruction, limits: dict[str, int], plan: Plan, weights_bytes: int, where: str) -> None:
    opcode, operands = instruction
    name = OPCODES[opcode][0]
    meanings = iter(_MEANINGS.get(name, ()))
    for kind, operand in zip(_KINDS[opcode], operands, strict=True):
        meaning = next(meanings) if kind[-1] == "i" else kind[-1]
        for value in operand if isinstance(operand, tuple) else (operand,):
            if meaning == "positive":
                require(1 <= value <= _INT64_MAX, f"{name}: grain out of range", where, str(value))
            elif meaning:
                why = f"expected 0 to {limits[meaning] - 1}, got {value}"
                require(0 <= value < limits[meaning], f"{name}: {meaning} out of range", where, why)
    if name == "buffer_weights":
        _, offset, size_bytes = operands
        assert isinstance(offset, int)
        assert isinstance(size_bytes, int)
        why = f"{size_bytes} bytes at {offset} of {weights_bytes}"
        require(offset <= weights_bytes and size_bytes <= weights_bytes - offset, "weights out of range", where, why)
    if name in ("input_dim", "output_dim"):
        tensor, axis = (operands[1], operands[2]) if name == "input_dim" else (operands[0], operands[1])
        assert isinstance(tensor, int)
        assert isinstance(axis, int)
        rank = len((plan.inputs if name == "input_dim" else plan.outputs)[tensor].dims)
        require(axis < rank, f"{name}: axis out of range", where, f"axis {axis} of rank {rank}")
