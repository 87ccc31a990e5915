"""Loop programs as text: the view of stage 7 (``--to loops``), and the canonical form that names a
kernel.

In: a ``LoopProgram``. Out: text in which different programs differ. Not done here: reading it back
(``parse_loops``), the steps of a group (``print_lowered``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import format_dim
from ingot_compiler.lowering.loops import (
    CallExtern,
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
)
from ingot_compiler.lowering.print_loop_blocks import block_lines
from ingot_compiler.lowering.print_loop_values import print_access, print_argument, print_value


def print_loops(program: LoopProgram) -> str:
    """Print a program; the text ends with a line end."""
    buffers = ", ".join(
        f"b{number}: {'write ' if buffer.written else ''}{buffer.dtype}"
        for number, buffer in enumerate(program.buffers)
    )
    scalars = f"; {', '.join(program.scalars)}" if program.scalars else ""
    head = f"kernel({buffers}{scalars}) scratch {format_dim(program.scratch_bytes)} {{"
    loop = f"  parallel {program.index} in {format_dim(program.extent)} grain {program.grain} {{"
    return "\n".join([head, loop, *_indent(program.body, "    "), "  }", "}", ""])


def _indent(body: Sequence[Statement], space: str) -> Iterator[str]:
    for statement in body:
        for line in _statement(statement):
            yield space + line


def _block(head: str, body: Sequence[Statement]) -> Iterator[str]:
    yield f"{head} {{"
    yield from _indent(body, "  ")
    yield "}"


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case Let(name, value):
            yield f"{name} = {print_value(value)}"
        case LetIndex(name, value, reach):
            within = f" within {reach}" if reach else ""
            yield f"index {name}{within} = {print_value(value)}"
        case Store(buffer, index, value):
            yield f"{print_access(buffer, index)} = {print_value(value)}"
        case For(variable, extent, kind, body):
            yield from _block(f"{kind} {variable} in {format_dim(extent)}", body)
        case Require(number, condition):
            yield f"require {number}: {print_value(condition)}"
        case CallExtern(symbol, number, arguments):
            yield f"extern {number}: {symbol}({', '.join(map(print_argument, arguments))})"
        case If(condition, body):
            yield from _block(f"if {print_value(condition)}", body)
        case Reduce():
            yield from _reduce(statement)
        case Filter():
            yield from _filter(statement)
        case _:
            *lines, last = block_lines(statement)
            yield from lines
            yield from _block(last, statement.epilogue)


def _reduce(statement: Reduce) -> Iterator[str]:
    notes = (" lanes" if statement.lanes else "") + (" unroll" if statement.unroll else "")
    over = f"over {statement.variable} in {format_dim(statement.extent)}"
    yield f"{statement.name}: {statement.dtype} = {statement.function}{notes} {over} {{"
    yield from _indent(statement.body, "  ")
    yield f"  yield {print_value(statement.value)}"
    yield "}"


def _filter(statement: Filter) -> Iterator[str]:
    over = f"over {statement.variable} in {format_dim(statement.extent)}"
    places = f"from {format_dim(statement.start)} below {format_dim(statement.limit)}"
    yield f"filter {statement.name} {over} {places} {{"
    yield from _indent(statement.body, "  ")
    yield f"  yield {print_value(statement.condition)}"
    yield from _indent(statement.stores, "  ")
    yield "}"
