"""Loop programs as text: the view of stage 7 (``--to loops``), and the canonical form that names a
kernel.

In: a ``LoopProgram``. Out: text in which different programs differ. Not done here: reading it back
(``parse_loops``), the steps of a group (``print_lowered``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Compare,
    Constant,
    Contraction,
    Depthwise,
    DepthwisePlane,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
    Transpose,
    Value,
)

_SIGNS = {"less": "<", "less_equal": "<=", "equal": "=="}


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
        case LetIndex(name, value):
            yield f"index {name} = {print_value(value)}"
        case Store(buffer, index, value):
            yield f"b{buffer}[{format_dim(index)}] = {print_value(value)}"
        case For(variable, extent, kind, body):
            yield from _block(f"{kind} {variable} in {format_dim(extent)}", body)
        case Require(number, condition):
            yield f"require {number}: {print_value(condition)}"
        case If(condition, body):
            yield from _block(f"if {print_value(condition)}", body)
        case Reduce():
            yield from _reduce(statement)
        case Contraction():
            yield from _contraction(statement)
        case Depthwise():
            yield from _depthwise(statement)
        case DepthwisePlane():
            yield from _depthwise_plane(statement)
        case Attention():
            yield from _attention(statement)
        case Transpose():
            yield from _transpose(statement)


def _reduce(statement: Reduce) -> Iterator[str]:
    notes = (" lanes" if statement.lanes else "") + (" unroll" if statement.unroll else "")
    head = f"{statement.name}: {statement.dtype} = {statement.function}{notes} over {statement.variable}"
    yield f"{head} in {format_dim(statement.extent)} {{"
    yield from _indent(statement.body, "  ")
    yield f"  yield {print_value(statement.value)}"
    yield "}"


def _fields(**fields: Dim | str | bool | float | None) -> str:
    """``name=value`` in the order given."""
    return " ".join(f"{name}={_field(value)}" for name, value in fields.items())


def _field(value: Dim | str | bool | float | None) -> str:
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    return repr(value) if isinstance(value, float) else format_dim(value)


def _contraction(s: Contraction) -> Iterator[str]:
    yield "contraction"
    yield "  " + _fields(row=s.row, rows=s.rows, row_start=s.row_start, row_block=s.row_block)
    yield "  " + _fields(column=s.column, columns=s.columns, column_start=s.column_start)
    taps = ", ".join(f"{name} in {format_dim(extent)}" for name, extent in s.taps)
    yield f"  taps=({taps}) depth={s.depth} in {format_dim(s.depth_extent)} tile={s.tile.rows}x{s.tile.vectors}"
    yield f"  a=b{s.a}[{format_dim(s.a_index)}]"
    yield f"  b=b{s.b}[{format_dim(s.b_index)}] padded={s.b_padded}"
    yield from _block(f"  {s.accumulator}: {s.dtype} ->", s.epilogue)


def _depthwise(s: Depthwise) -> Iterator[str]:
    yield "depthwise"
    yield "  " + _fields(
        x=s.x, x_extent=s.x_extent, channel=s.channel, channels=s.channels, pixels=s.pixels
    )
    yield f"  taps=({', '.join(f'{name} in {extent}' for name, extent in s.taps)})"
    yield f"  a=b{s.a}[{format_dim(s.a_index)}]"
    yield f"  w=b{s.w}[{format_dim(s.w_index)}]"
    yield from _block(f"  {s.accumulator}: {s.dtype} ->", s.epilogue)


def _depthwise_plane(s: DepthwisePlane) -> Iterator[str]:
    yield "depthwise plane"
    yield "  " + _fields(
        y=s.y, y_extent=s.extents[0], x=s.x, x_extent=s.extents[1], rows_together=s.rows_together
    )
    for name in ("image", "strides", "dilations", "pads"):
        yield f"  {name}={getattr(s, name)}"
    yield f"  taps=({', '.join(f'{name} in {extent}' for name, extent in s.taps)})"
    yield f"  a=b{s.a}[{format_dim(s.a_index)}] over {s.row}, {s.column}"
    yield f"  w=b{s.w}[{format_dim(s.w_index)}]"
    yield from _block(f"  {s.accumulator}: {s.dtype} ->", s.epilogue)


def _attention(s: Attention) -> Iterator[str]:
    yield "attention"
    yield "  " + _fields(
        query=s.query, queries=s.queries, query_start=s.query_start, query_block=s.query_block
    )
    yield "  " + _fields(key=s.key, keys=s.keys, depth=s.depth, depth_extent=s.depth_extent)
    yield "  " + _fields(value=s.value, value_extent=s.value_extent, group=s.group)
    yield f"  q=b{s.q}[{format_dim(s.q_index)}]"
    yield f"  k=b{s.k}[{format_dim(s.k_index)}]"
    yield f"  v=b{s.v}[{format_dim(s.v_index)}]"
    mask = "None" if s.mask is None else print_value(s.mask)
    yield f"  scale={s.scale!r} mask={mask}"
    yield "  " + _fields(causal=s.causal, causal_offset=s.causal_offset, nan_to_zero=s.nan_to_zero)
    yield from _block(f"  {s.accumulator}: f32 ->", s.epilogue)


def _transpose(s: Transpose) -> Iterator[str]:
    yield "transpose"
    yield "  " + _fields(row=s.row, rows=s.rows, row_start=s.row_start, row_block=s.row_block)
    yield "  " + _fields(
        column=s.column, columns=s.columns, column_start=s.column_start, column_block=s.column_block
    )
    for name, buffer, index in s.values:
        yield f"  {name}=b{buffer}[{format_dim(index)}]"
    yield from _block("  ->", s.epilogue)


def print_value(value: Value) -> str:
    """Print one value: ``add(b0[i], 1.0:f32)``."""
    match value:
        case Load(buffer, index):
            return f"b{buffer}[{format_dim(index)}]"
        case Constant(number, dtype):
            return f"{json.dumps(number)}:{dtype}"
        case FromIndex(index, dtype):
            return f"({format_dim(index)}):{dtype}"
        case Compare(function, left, right):
            return f"({format_dim(left)} {_SIGNS[function]} {format_dim(right)})"
        case Local(name, dtype):
            return f"%{name}:{dtype}"
        case Apply(function, arguments, dtype):
            return f"{function}({', '.join(map(print_value, arguments))}):{dtype}"
