"""The blocks of a loop program as text: contractions, depthwise convolutions, attention,
transposes.

In: a block. Out: its lines, up to the epilogue, which ``parse_loop_blocks`` reads back. Not done
here: the epilogue (``print_loops``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.lowering.loop_parts import PackedPanels
from ingot_compiler.lowering.loops import (
    Attention,
    Block,
    BlockedProduct,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Transpose,
    Winograd,
)
from ingot_compiler.lowering.print_loop_values import print_access, print_value


def block_lines(block: Block) -> Iterator[str]:
    """The lines in front of the statements of the epilogue; behind the last one is their brace."""
    match block:
        case Contraction():
            return _contraction(block)
        case BlockedProduct():
            return _blocked_product(block)
        case Depthwise():
            return _depthwise(block)
        case DepthwisePlane():
            return _depthwise_plane(block)
        case Winograd():
            return _winograd(block)
        case Attention():
            return _attention(block)
        case Transpose():
            return _transpose(block)


def _fields(**fields: Dim | str | bool | float | None) -> str:
    """``name=value`` in the order given."""
    return " ".join(f"{name}={_field(value)}" for name, value in fields.items())


def _field(value: Dim | str | bool | float | None) -> str:
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    return repr(value) if isinstance(value, float) else format_dim(value)


def _taps(taps: Sequence[tuple[str, Dim]]) -> str:
    return f"taps=({', '.join(f'{name} in {format_dim(extent)}' for name, extent in taps)})"


def _panels(panels: PackedPanels | None) -> str:
    if panels is None:
        return "None"
    addends = "" if panels.addends is None else f" addends={print_access(panels.addends, 0)}"
    return f"{panels.columns} step={format_dim(panels.step)} together={panels.together}{addends}"


def _contraction(s: Contraction) -> Iterator[str]:
    yield "contraction"
    yield "  " + _fields(row=s.row, rows=s.rows, row_start=s.row_start, row_block=s.row_block)
    yield "  " + _fields(column=s.column, columns=s.columns, column_start=s.column_start)
    depth = f"depth={s.depth} in {format_dim(s.depth_extent)}"
    yield f"  {_taps(s.taps)} {depth} tile={s.tile.rows}x{s.tile.vectors}"
    if s.in_matrix_tiles:
        yield "  " + _fields(in_matrix_tiles=True)
    if s.rounds_to_odd:
        yield "  " + _fields(rounds_to_odd=True)
    if s.team is not None:
        yield "  " + _fields(team=s.team.units, place=s.team.place)
    if s.strassen is not None:
        yield "  " + _fields(strassen=s.strassen.vectors, block=s.strassen.depth)
    yield f"  a={print_access(s.a, s.a_index)}"
    yield f"  b={print_access(s.b, s.b_index)} panels={_panels(s.b_panels)}"
    if s.split is not None:
        lower = (
            " ".join(print_access(buffer, 0) for buffer in side) for side in (s.split.a, s.split.b)
        )
        yield f"  split={len(s.split.a)} {' '.join(lower)}"
        plain = print_access(s.split.plain, s.split.plain_index)
        yield f"  plain={plain} fits={print_access(s.split.fits, 0)}"
    yield f"  {s.accumulator}: {s.dtype} ->"


def _blocked_product(s: BlockedProduct) -> Iterator[str]:
    yield "blocked"
    yield "  " + _fields(row=s.row, rows=s.rows, row_start=s.row_start, row_block=s.row_block)
    yield "  " + _fields(column=s.column, columns=s.columns, column_start=s.column_start)
    yield "  " + _fields(blocks=s.blocks, block=s.block, bits=s.bits, signed=s.signed)
    yield f"  a={print_access(s.a, s.a_index)}"
    zeros = "None" if s.zeros is None else print_access(s.zeros, 0)
    yield f"  b={print_access(s.b, 0)} scales={print_access(s.scales, 0)} zeros={zeros}"
    if s.digits is not None:
        buffers = (s.digits.digits, s.digits.steps, s.digits.sums)
        names = " ".join(print_access(buffer, 0) for buffer in buffers)
        yield f"  digits={s.digits.count} {names}"
    yield f"  {s.accumulator}: f32 ->"


def _depthwise(s: Depthwise) -> Iterator[str]:
    yield "depthwise"
    yield "  " + _fields(
        x=s.x, x_extent=s.x_extent, channel=s.channel, channels=s.channels, pixels=s.pixels
    )
    yield f"  {_taps(s.taps)}"
    yield f"  a={print_access(s.a, s.a_index)}"
    yield f"  w={print_access(s.w, s.w_index)}"
    yield f"  {s.accumulator}: {s.dtype} ->"


def _depthwise_plane(s: DepthwisePlane) -> Iterator[str]:
    yield "depthwise plane"
    yield "  " + _fields(
        y=s.y, y_extent=s.extents[0], x=s.x, x_extent=s.extents[1], rows_together=s.rows_together
    )
    yield f"  image=({', '.join(map(format_dim, s.image))})"
    for name in ("strides", "dilations", "pads"):
        yield f"  {name}={getattr(s, name)}"
    yield f"  {_taps(s.taps)}"
    yield f"  a={print_access(s.a, s.a_index)} over {s.row}, {s.column}"
    yield f"  w={print_access(s.w, s.w_index)}"
    yield f"  {s.accumulator}: {s.dtype} ->"


def _winograd(s: Winograd) -> Iterator[str]:
    yield "winograd"
    yield "  " + _fields(image=s.image, images=s.images)
    yield "  " + _fields(y=s.y, y_extent=s.extents[0], x=s.x, x_extent=s.extents[1])
    yield f"  kernel={s.kernel} tile={s.tile}"
    yield "  " + _fields(tile_start=s.tile_start, tile_block=s.tile_block)
    yield "  " + _fields(channel=s.channel, channels=s.channels, groups=s.groups)
    yield "  " + _fields(column=s.column, columns=s.columns, column_start=s.column_start)
    yield f"  registers={s.registers.rows}x{s.registers.vectors}"
    yield f"  a={print_access(s.a, s.a_index)}"
    yield f"  transformed={print_access(s.transformed, 0)} w={print_access(s.w, 0)}"
    yield f"  {s.accumulator}: f32 ->"


def _attention(s: Attention) -> Iterator[str]:
    yield "attention"
    yield "  " + _fields(
        query=s.query, queries=s.queries, query_start=s.query_start, query_block=s.query_block
    )
    yield "  " + _fields(key=s.key, keys=s.keys, depth=s.depth, depth_extent=s.depth_extent)
    yield "  " + _fields(value=s.value, value_extent=s.value_extent, group=s.group)
    yield f"  q={print_access(s.q, s.q_index)}"
    yield f"  k={print_access(s.k, s.k_index)}"
    yield f"  v={print_access(s.v, s.v_index)}"
    yield "  " + _fields(scale=s.scale, mask=None if s.mask is None else print_value(s.mask))
    yield "  " + _fields(
        causal=s.causal,
        causal_offset=s.causal_offset,
        nan_to_zero=s.nan_to_zero,
        in_place=s.in_place,
    )
    yield f"  {s.accumulator}: f32 ->"


def _transpose(s: Transpose) -> Iterator[str]:
    yield "transpose"
    yield "  " + _fields(row=s.row, rows=s.rows, row_start=s.row_start, row_block=s.row_block)
    yield "  " + _fields(
        column=s.column, columns=s.columns, column_start=s.column_start, column_block=s.column_block
    )
    for name, buffer, index in s.values:
        yield f"  {name}={print_access(buffer, index)}"
    yield "  ->"
