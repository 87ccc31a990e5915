"""Reads the text form of the instruction list of ``main``.

In: text, as ``print_program`` writes it or by hand. Out: a ``Program`` that ``verify_program``
accepts, or ``ModelError`` with line and column. Not done here: inputs, outputs and kernels that it
names, which are not part of the text.
"""

from __future__ import annotations

import functools

from ingot_compiler.host_program.verify_program import find_program_problems
from ingot_compiler.ir.text.parse_graph import Places
from ingot_compiler.ir.text.text_reader import Reader
from ingot_runtime.format.program import CODES, Instruction, Program, operand_kinds


def parse_program(text: str) -> Program:
    """The program that ``text`` writes down; ``print_program(parse_program(text)) == text``."""
    reader, places = Reader("program", text), Places()
    reader.expect("registers")
    register_count = reader.integer()
    reader.expect(",", "buffers")
    buffer_count = reader.integer()
    messages: list[str] = []
    while reader.accept("message"):
        reader.expect(str(len(messages)), ":")
        messages.append(reader.string())
    instructions: list[Instruction] = []
    while reader.token.kind != "END":
        places[(len(instructions),)] = reader.expect(str(len(instructions)))
        reader.expect(":")
        instructions.append(_instruction(reader))
    program = Program(tuple(instructions), register_count, buffer_count, tuple(messages))
    reader.check(find_program_problems(program), places)
    return program


def _instruction(reader: Reader) -> Instruction:
    opcode = CODES[reader.choice(tuple(CODES))]
    operands: list[int | tuple[int, ...]] = []
    for number, kind in enumerate(operand_kinds(opcode)):
        if number:
            reader.expect(",")
        if kind.startswith("*"):
            reader.expect("[")
            operands.append(reader.items(functools.partial(_operand, reader, kind[-1]), "]"))
        else:
            operands.append(_operand(reader, kind))
    return opcode, tuple(operands)


def _operand(reader: Reader, kind: str) -> int:
    if kind == "r":
        return reader.number("r", "a register (r0)")
    if kind == "b":
        return reader.buffer()
    if kind == "l":
        reader.expect("@")
    return reader.integer()
