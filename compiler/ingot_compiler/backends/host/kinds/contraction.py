"""Convolutions and matrix products as register-tiled contractions with a fused epilogue.

In: a group anchored by ``conv`` (channels-last, zero halo in the buffer) or ``matmul``. Out: its
loop program.
Not done here: packing of B (``pack``: the fused graph's constants are already panels), depthwise
(``depthwise``).

A constant B is packed in panels ``[group][panel][k][NB]``, NB = tile columns, of 16-bit integers
``[panel][k / 2][NB][2]`` where the depth is even; a B made at run time is read in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.backends.host.convolution import ConvShape
from ingot_compiler.backends.host.tiles import choose_row_block, choose_tile, lanes_of
from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_mod,
    dim_mul,
    dim_product,
    substitute,
    symbol,
)
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import FLOATS, DType, dtype_size_bits, dtype_size_bytes
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Contraction,
    Load,
    Local,
    LoopProgram,
    RegisterTile,
    Statement,
    Store,
)
from ingot_compiler.lowering.space import Run, Space, ceil_div
from ingot_compiler.lowering.typical import typical
from ingot_compiler.lowering.views import flat_offset

SMALL_B_BYTES = (
    192 * 1024
)  # a B that stays in L2 beside the rows: iterate rows outside, panels inside
BIAS = 2  # operand of conv


@dataclass(frozen=True, slots=True)
class _Product:
    """The matrix view of a contraction: ``outer`` independent products of rows x columns."""

    outer: Dim
    rows: Dim
    columns: Dim
    taps: tuple[tuple[str, Dim], ...]
    depth: Dim
    packed: bool
    pairs: bool = False  # the depth is a pair that lies beside each other in A and B; the last tap counts pairs


@dataclass(frozen=True, slots=True)
class _Units:
    """How the parallel index enumerates (outer, panel, row block)."""

    extent: Dim
    outer: Dim
    panel: Dim
    row_start: Dim
    row_block: int


def contraction_tile(rows: Dim, columns: Dim, target: KernelTarget, dtype: DType) -> RegisterTile:
    """The register block for a product."""
    return choose_tile(_fixed(rows), _fixed(columns), target, dtype)


def panel_width(rows: Dim, columns: Dim, target: KernelTarget, dtype: DType) -> int:
    """Columns of a panel of a packed B."""
    return contraction_tile(rows, columns, target, dtype).vectors * lanes_of(dtype, target)


def has_pairs(dtype: DType, depth: Dim) -> bool:
    """Whether a packed B of ``dtype`` holds pairs of its rows beside each other (see
    ``Contraction``)."""
    return dtype == "i16" and isinstance(depth, int) and depth % 2 == 0


def sum_dtype(dtype: DType) -> DType:
    """What products of operands of ``dtype`` are summed in."""
    if dtype in FLOATS:
        return "f64" if dtype == "f64" else "f32"
    return "i32" if dtype_size_bits(dtype) < dtype_size_bits("i32") else dtype


def _fixed(dim: Dim) -> int | None:
    return dim if isinstance(dim, int) else None


def _units(
    product: _Product, tile: RegisterTile, target: KernelTarget, dtype: DType, b_dtype: DType
) -> _Units:
    index = symbol("p")
    panels = ceil_div(product.columns, tile.vectors * lanes_of(dtype, target))
    depth = dim_mul(dim_product(tuple(extent for _, extent in product.taps)), product.depth)
    block = choose_row_block(_fixed(product.rows), _fixed(product.columns), tile, target, dtype)
    blocks = ceil_div(product.rows, block)
    per_outer = dim_mul(panels, blocks)
    within = dim_mod(index, per_outer) if product.outer != 1 else index
    outer = dim_floordiv(index, per_outer) if product.outer != 1 else 0
    b_bytes = typical(dim_mul(depth, product.columns)) * dtype_size_bytes(b_dtype)
    if b_bytes <= SMALL_B_BYTES:
        panel, row_unit = _split(within, panels)
    else:
        row_unit, panel = _split(within, blocks)
    return _Units(dim_mul(product.outer, per_outer), outer, panel, dim_mul(row_unit, block), block)


def _split(within: Dim, fast: Dim) -> tuple[Dim, Dim]:
    """(index of the fast dimension, index of the slow one)."""
    if fast == 1:
        return 0, within
    return dim_mod(within, fast), dim_floordiv(within, fast)


def _program(
    group: Group,
    target: KernelTarget,
    product: _Product,
    a_index: Dim,
    b_base: Dim,
    b_pitch: Dim,
    result_space: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    column_shift: Dim,
) -> LoopProgram:
    """Assemble the program. ``a_index`` is over ``g`` (outer), ``row``, taps and ``k``;
    ``result_space`` names the axes of the anchor's result that outer, rows and columns
    enumerate."""
    anchor = group.nodes[group.anchor]
    buffers = GroupBuffers(group)
    a, b = (_operand(group, anchor.operands[position]) for position in (0, 1))
    dtype = sum_dtype(a.type.dtype)
    tile = contraction_tile(product.rows, product.columns, target, dtype)
    units = _units(product, tile, target, dtype, b.type.dtype)
    width = tile.vectors * lanes_of(dtype, target)
    row, column = symbol("row"), symbol("column")
    column_start = dim_mul(units.panel, width)
    flat_k = _flat_depth(product)
    if product.packed:
        panels = ceil_div(product.columns, width)
        panel_size = dim_mul(_total_depth(product), width)
        base = dim_mul(dim_mul(units.outer, panels) + units.panel, panel_size)
        if product.pairs:
            pair = symbol(product.taps[-1][0])
            b_index = (
                base + dim_mul(pair, 2 * width) + dim_mul(2, column - column_start) + symbol("k")
            )
        else:
            b_index = base + dim_mul(flat_k, width) + column - column_start
    else:
        b_index = _bind(b_base, units.outer) + dim_mul(flat_k, b_pitch) + column
    outer_axes, row_axes, column_axes = result_space
    shape = dict(group.types)[anchor.results[0]].shape
    runs = [Run(row_axes, row), Run(column_axes, column + _bind(column_shift, units.outer))]
    if outer_axes:
        runs.append(Run(outer_axes, units.outer))
    epilogue = anchored_epilogue(group, buffers, Space(shape, tuple(runs)))
    statement = Contraction(
        "row", product.rows, units.row_start, units.row_block,
        "column", product.columns, column_start,
        product.taps, "k", product.depth,
        buffers.number(a), _bind(a_index, units.outer), buffers.number(b), b_index, product.packed,
        dtype, "acc", epilogue, tile,
    )  # fmt: skip
    work = dim_mul(dim_mul(_total_depth(product), width), units.row_block)
    return finish_program(buffers, (statement,), units.extent, grain_for(dim_floordiv(work, 16)))


def _bind(index: Dim, outer: Dim) -> Dim:

    return substitute(index, {"g": outer})


def _total_depth(product: _Product) -> Dim:
    return dim_mul(dim_product(tuple(extent for _, extent in product.taps)), product.depth)


def _flat_depth(product: _Product) -> Dim:
    """Position in a packed panel: taps outer to inner, then depth."""
    flat: Dim = 0
    for name, extent in product.taps:
        flat = dim_mul(flat, extent) + symbol(name)
    return dim_mul(flat, product.depth) + symbol("k")


def _operand(group: Group, value: int) -> Operand:
    return next(operand for operand in group.operands if operand.value == value)


def anchored_epilogue(group: Group, buffers: GroupBuffers, space: Space) -> tuple[Statement, ...]:
    """Bias, then the fused nodes, then the store."""
    anchor = group.nodes[group.anchor]
    result = group.results[0]
    dtype = dict(group.types)[anchor.results[0]].dtype
    wide = dtype if dtype in FLOATS else sum_dtype(dtype)  # registers hold halves as f32
    elements = Elements(group, buffers, {anchor.results[0]: Local("acc", wide)})
    if len(anchor.operands) > BIAS:
        bias = _operand(group, anchor.operands[BIAS])
        load = Load(
            buffers.number(bias), bias.view.offset + dim_mul(space.index(1), bias.view.strides[0])
        )
        elements.given[anchor.results[0]] = elements.let(
            Apply("add", (Local("acc", wide), load), wide), wide
        )
    if wide != dtype:
        narrowed = Apply("cast", (elements.given[anchor.results[0]],), dtype)
        elements.given[anchor.results[0]] = elements.let(narrowed, dtype)
    value = elements.value(result.value, space)
    return (
        *elements.take(),
        Store(buffers.number(result), space.offset_of(result.view, result.type.shape), value),
    )


def lower_matmul(group: Group, target: KernelTarget) -> LoopProgram:
    """``matmul``: a constant 2-D B makes one product of all rows; else one product per batch."""
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    a, b = (_operand(group, anchor.operands[position]) for position in (0, 1))
    result_shape = types[anchor.results[0]].shape
    rank = len(result_shape)
    depth, columns = a.type.shape[-1], result_shape[-1]
    k, row = symbol("k"), symbol("row")
    if _is_packed(anchor):
        pairs = has_pairs(b.type.dtype, depth)
        taps: tuple[tuple[str, Dim], ...] = (("pair", dim_floordiv(depth, 2)),) if pairs else ()
        step = dim_mul(2, symbol("pair")) + k if pairs else k
        axes = tuple(range(rank - 1))
        rows_shape = a.type.shape[:-1]
        shift = rank - len(a.type.shape)
        product = _Product(
            1,
            dim_product(rows_shape),
            columns,
            taps,
            2 if pairs else depth,
            packed=True,
            pairs=pairs,
        )
        a_index = (
            a.view.offset
            + flat_offset(row, rows_shape, a.view.strides[:-1])
            + dim_mul(step, a.view.strides[-1])
        )
        assert shift == 0
        return _program(group, target, product, a_index, 0, 0, ((), axes, (rank - 1,)), 0)
    batch = result_shape[:-2]
    product = _Product(dim_product(batch), result_shape[-2], columns, (), depth, packed=False)
    a_index = (
        _batch_offset(a, batch) + dim_mul(row, a.view.strides[-2]) + dim_mul(k, a.view.strides[-1])
    )
    b_base = _batch_offset(b, batch)
    outer_axes = tuple(range(rank - 2))
    return _program(
        group,
        target,
        product,
        a_index,
        b_base,
        b.view.strides[-2],
        (outer_axes, (rank - 2,), (rank - 1,)),
        0,
    )


def _batch_offset(operand: Operand, batch: tuple[Dim, ...]) -> Dim:
    """Offset of product ``g`` in an operand whose batch axes broadcast to ``batch``."""
    own = operand.type.shape[:-2]
    missing = len(batch) - len(own)
    strides: list[Dim] = [0] * missing
    strides += [
        0 if size == 1 else stride
        for size, stride in zip(own, operand.view.strides[:-2], strict=True)
    ]
    return operand.view.offset + flat_offset(symbol("g"), batch, strides)


def _is_packed(anchor: Node) -> bool:
    return any(name == "packed" for name, _ in anchor.attributes)


def lower_conv(group: Group, target: KernelTarget) -> LoopProgram:
    """``conv`` as a product of output pixels by output channels over (kernel position, input
    channel)."""
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    x, w = (_operand(group, anchor.operands[position]) for position in (0, 1))
    conv = ConvShape.of(anchor, x, _weight_shape(anchor))
    result_shape = types[anchor.results[0]].shape
    spatial = tuple(range(2, len(result_shape)))
    rows_shape = (result_shape[0], *result_shape[2:])
    row_strides = (
        x.view.strides[0],
        *(dim_mul(s, x.view.strides[2 + i]) for i, s in enumerate(conv.strides)),
    )
    taps, depth, tap_offset = conv.reduction(x)
    channels = dim_floordiv(result_shape[1], conv.groups)
    product = _Product(
        conv.groups, dim_product(rows_shape), channels, taps, depth, packed=_is_packed(anchor)
    )
    group_offset = dim_mul(symbol("g"), conv.channels_per_group) if conv.groups != 1 else 0
    a_index = (
        conv.origin(x)
        + group_offset
        + flat_offset(symbol("row"), rows_shape, row_strides)
        + tap_offset
    )
    b_base = w.view.offset + dim_mul(symbol("g"), w.view.strides[0])
    shift = dim_mul(symbol("g"), channels) if conv.groups != 1 else 0
    return _program(
        group,
        target,
        product,
        a_index,
        b_base,
        w.view.strides[-2],
        ((), (0, *spatial), (1,)),
        shift,
    )


def _weight_shape(anchor: Node) -> tuple[Dim, ...]:
    """[O, C/groups, kernel..] as the graph has it; the operand is laid out anew."""
    return anchor.dims("weight_shape")


CONV = Kind("conv", one_kernel(lower_conv), ResultLayout.CHANNELS_LAST)
MATMUL = Kind("matmul", one_kernel(lower_matmul), ResultLayout.ROW_MAJOR)
