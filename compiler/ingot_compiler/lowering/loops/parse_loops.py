"""Reads the text form of a loop program.

In: text, as ``print_loops`` writes it or by hand. Out: a ``LoopProgram`` that ``verify_loops``
accepts, or ``ModelError`` with line and column. Not done here: sizes of buffers, which the text
does not say.
"""

from __future__ import annotations

from ingot_compiler.ir.text.read_terms import read_dim, read_dtype
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.lowering.loops.loop_value_text import read_range
from ingot_compiler.lowering.loops.print_loops import read_body
from ingot_compiler.lowering.loops.program import Buffer, LoopProgram
from ingot_compiler.lowering.loops.verify_loops import find_loop_problems


def parse_loops(text: str) -> LoopProgram:
    """The program that ``text`` writes down; ``parse_loops(print_loops(p)) == p``."""
    reader = Reader("loops", text)
    program = read_loops(reader)
    reader.end()
    return program


def read_loops(reader: Reader) -> LoopProgram:
    """The program that comes next, verified."""
    reader.expect("kernel", "(")
    buffers = _buffers(reader)
    scalars = reader.listed(reader.name) if reader.accept(";") else ()
    reader.expect(")", "scratch")
    scratch_bytes = read_dim(reader)
    reader.expect("{", "parallel")
    index, extent = read_range(reader)
    reader.expect("grain")
    grain = reader.integer()
    reader.expect("{")
    places, reader.places = reader.places, {}
    body = read_body(reader)
    reader.expect("}", "}")
    program = LoopProgram(buffers, scalars, index, extent, grain, body, scratch_bytes)
    reader.check(find_loop_problems(program), reader.places)
    reader.places = places
    return program


def _buffers(reader: Reader) -> tuple[Buffer, ...]:
    found: list[Buffer] = []
    while not reader.at(")") and not reader.at(";"):
        if found:
            reader.expect(",")
        reader.expect(f"b{len(found)}", ":")
        written = reader.accept("write")
        found.append(Buffer(read_dtype(reader), written))
    return tuple(found)
