"""Reading one instruction of a program: its opcode's name, its operands.

In: an instruction. Out: its parts, with their types. Not done here: what it does (``steps``).
"""

from ingot_compiler.ir.errors import InternalError
from ingot_runtime.format.program import OPCODES, Instruction

Operand = int | tuple[int, ...]


def opcode_name(instruction: Instruction) -> str:
    """Return the name of an instruction's opcode."""
    return OPCODES[instruction[0]][0]


def numbers_of(instruction: Instruction) -> list[int]:
    """Return the operands of an instruction that has no lists.

    Raises:
        InternalError: one is a list.
    """
    return [number(operand) for operand in instruction[1]]


def number(operand: Operand) -> int:
    """Return an operand that is one number.

    Raises:
        InternalError: it is a list.
    """
    if isinstance(operand, tuple):
        raise InternalError(
            "malformed program", why=f"expected a number as operand, got the list {operand}"
        )
    return operand


def number_list(operand: Operand) -> tuple[int, ...]:
    """Return an operand that is a list.

    Raises:
        InternalError: it is one number.
    """
    if isinstance(operand, int):
        raise InternalError("malformed program", why=f"expected a list as operand, got {operand}")
    return operand
