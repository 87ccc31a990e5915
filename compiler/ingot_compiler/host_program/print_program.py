"""Text form of the instruction list of ``main``: registers ``r0``, buffers ``b0``, labels ``@0``;
``parse_program`` reads it back.

In: a ``Program``. Out: text that ends with a newline. Not done here: building (``main_program``),
machine code.
"""

from __future__ import annotations

import json

from ingot_runtime.format.program import OPCODES, Instruction, Program, operand_kinds

PREFIXES = {"r": "r", "b": "b", "i": "", "l": "@"}
"""Kind of operand -> what stands before its number."""


def print_program(program: Program) -> str:
    """Counts and messages, then one instruction a line."""
    lines = [f"registers {program.register_count}, buffers {program.buffer_count}"]
    lines += [f"message {index}: {json.dumps(text)}" for index, text in enumerate(program.messages)]
    lines += [
        f"{index}: {_instruction(item)}".rstrip() for index, item in enumerate(program.instructions)
    ]
    return "".join(f"{line}\n" for line in lines)


def _instruction(instruction: Instruction) -> str:
    opcode, operands = instruction
    kinds = operand_kinds(opcode)
    texts = (_operand(*pair) for pair in zip(kinds, operands, strict=True))
    return f"{OPCODES[opcode][0]} {', '.join(texts)}"


def _operand(kind: str, operand: int | tuple[int, ...]) -> str:
    prefix = PREFIXES[kind[-1]]
    if isinstance(operand, tuple):
        return f"[{', '.join(f'{prefix}{number}' for number in operand)}]"
    return f"{prefix}{operand}"
