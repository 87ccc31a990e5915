"""ONNX's ops that move elements and compute nothing.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    range_mask,
    reshape,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim, require_other_sizes, with_count
from ingot_compiler.frontend.build.run_time_shapes import axis_flags, kept_sizes
from ingot_compiler.frontend.families.weights.block_weights import note_transposed
from ingot_compiler.frontend.model.onnx_node import counted_axes, counted_axis
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul, dim_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.rules.shapes import broadcast_shapes


def _concat(context: OpContext) -> Sequence[int]:
    """Operands one after the other along an axis.

    In: one or more tensors. Out: core ``concat``.
    """
    values = context.given()
    axis = context.axis_attribute(1, context.rank_of(values[0]))
    return (concat(context, values, axis),)


def _depth_to_space(context: OpContext) -> Sequence[int]:
    """Blocks of channels become blocks of rows and columns (modes DCR and CRD).

    In: x[N, C, H, W]. Out: core ``reshape``, ``transpose``.
    """
    x, block = context.operand(0), context.int_attribute("blocksize", 1)
    mode = context.string_attribute("mode", "DCR", ("DCR", "CRD"))
    shape = context.shape_of(x)
    if len(shape) != 4 or block < 1 or (isinstance(shape[1], int) and shape[1] % (block * block)):
        raise OpTypeError(f"x[N, C, H, W] with {block * block} dividing C", context.type_of(x))
    batch, channels, height, width = shape
    depth = dim_floordiv(channels, block * block)
    split = (block, block, depth) if mode == "DCR" else (depth, block, block)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    moved = transpose(context, reshape(context, x, (batch, *split, height, width)), order)
    return (reshape(context, moved, (batch, depth, dim_mul(height, block), dim_mul(width, block))),)


def _expand(context: OpContext) -> Sequence[int]:
    """Broadcasting to a shape, in both directions.

    In: a tensor and a shape that is known or computed at run time. Out: core ``broadcast_to``.
    """
    x, shape = context.operand(0), context.operand(1)
    dims = context.dims(shape)
    if dims is not None:
        target = broadcast_shapes(context.shape_of(x), dims)
        for wanted, size in zip(reversed(dims), reversed(target), strict=False):
            if wanted not in (1, size):
                expected = message("1 or the size of the operand, ", size)
                require_dim(context, dim_mul(wanted - 1, wanted - size), expected, wanted)
        return (broadcast_to(context, x, target),)
    return (broadcast_to(context, x, _read_expand(context, x, shape)),)


def _read_expand(context: OpContext, x: int, shape: int) -> tuple[Dim, ...]:
    """The two-sided rule at run time: where the wanted size is 1, x's own."""
    own, count = context.shape_of(x), context.count_of(shape)
    rank = max(len(own), count)
    wanted = cast(context, as_vector(context, shape), "i64")
    if count < rank:
        wanted = concat(context, [context.integers([1] * (rank - count)), wanted], 0)
    sizes = context.integers((*[1] * (rank - len(own)), *own))
    return context.read_dims(
        context.add("select", binary_scalar(context, "equal", wanted, 1), sizes, wanted)
    )


def _flatten(context: OpContext) -> Sequence[int]:
    """A matrix, the axes before ``axis`` against the others.

    In: a tensor. Out: core ``reshape``.
    """
    x, rank = context.operand(0), context.rank_of(context.operand(0))
    axis = context.int_attribute("axis", 1)
    # rank itself is allowed: everything is a row.
    axis = rank if axis == rank else 0 if rank == 0 else counted_axis(axis, rank)
    shape = context.shape_of(x)
    return (reshape(context, x, (dim_product(shape[:axis]), dim_product(shape[axis:]))),)


def _identity(context: OpContext) -> Sequence[int]:
    """The operand itself.

    In: a tensor, a sequence or an optional. Out: the same value, no core op.
    """
    return (context.operand(0),)


def _space_to_depth(context: OpContext) -> Sequence[int]:
    """Blocks of rows and columns become blocks of channels (modes DCR and CRD since opset 28).

    In: x[N, C, H, W]. Out: core ``reshape``, ``transpose``.
    """
    x, block = context.operand(0), context.int_attribute("blocksize", 1)
    mode = context.string_attribute("mode", "DCR", ("DCR", "CRD"))
    shape = context.shape_of(x)
    if (
        len(shape) != 4
        or block < 1
        or any(isinstance(size, int) and size % block for size in shape[2:])
    ):
        raise OpTypeError(f"x[N, C, H, W] with {block} dividing H and W", context.type_of(x))
    batch, channels = shape[:2]
    height, width = (dim_floordiv(size, block) for size in shape[2:])
    split = reshape(context, x, (batch, channels, height, block, width, block))
    moved = transpose(context, split, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return (reshape(context, moved, (batch, dim_mul(channels, block * block), height, width)),)


def _squeeze(context: OpContext) -> Sequence[int]:
    """Axes of size 1 removed; axes are an attribute before opset 13, then an operand.

    In: a tensor, perhaps axes, known or computed at run time. Out: core ``reshape``.
    """
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    operand = context.optional(1) if context.opset >= 13 else None
    axes = context.ints_attribute("axes") if operand is None else context.known_ints(operand)
    if operand is not None and axes is None:
        flags = axis_flags(context, operand, len(shape))
        return (reshape(context, x, kept_sizes(context, flags, shape, context.count_of(operand))),)
    if axes is None:
        require_other_sizes(context, enumerate(shape))
        counted = tuple(axis for axis, size in enumerate(shape) if size == 1)
    else:
        counted = counted_axes(axes, len(shape))
    wrong = [axis for axis in counted if isinstance(shape[axis], int) and shape[axis] != 1]
    if wrong:
        raise OpTypeError(f"size 1 at axis {wrong[0]}", context.type_of(x))
    return (reshape(context, x, [size for axis, size in enumerate(shape) if axis not in counted]),)


def _tile(context: OpContext) -> Sequence[int]:
    """The tensor repeated along each axis.

    In: a tensor and repeats that are known or computed at run time. Out: core ``reshape``,
    ``broadcast_to``.
    """
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    repeats = context.read_dims(with_count(context, context.operand(1), len(shape), "repeats"))
    pairs = list(zip(repeats, shape, strict=True))
    split = reshape(
        context,
        x,
        [dim for repeat, size in pairs for dim in ((1, size) if repeat != 1 else (size,))],
    )
    wide = broadcast_to(
        context,
        split,
        [dim for repeat, size in pairs for dim in ((repeat, size) if repeat != 1 else (size,))],
    )
    return (reshape(context, wide, [dim_mul(repeat, size) for repeat, size in pairs]),)


def _transpose(context: OpContext) -> Sequence[int]:
    """Axes in another order, reversed when ``perm`` is absent.

    In: a tensor. Out: core ``transpose``.
    """
    x = context.operand(0)
    rank = context.rank_of(x)
    permutation = context.ints_or("perm", range(rank)[::-1])
    assert permutation is not None
    # The standard has no negative axes here; an exporter writes them all the same, and they mean
    # one thing only.
    axes = tuple(axis + rank if axis < 0 else axis for axis in permutation)
    if sorted(axes) != list(range(rank)):
        raise OpTypeError(f"a permutation of {rank} axes", list(permutation))
    result = transpose(context, x, axes)
    note_transposed(context, x, result)
    return (result,)


def _trilu(context: OpContext) -> Sequence[int]:
    """The upper or lower triangle of matrices, 0 elsewhere.

    In: x[.., R, C], perhaps the diagonal k. Out: core ``iota``, ``less_equal``, ``select``.
    """
    x, k = context.operand(0), context.optional(1)
    shape = context.shape_of(x)
    if len(shape) < 2:
        raise OpTypeError("rank >= 2", context.type_of(x))
    rows, columns = range_mask(context, shape[-2:], 0), range_mask(context, shape[-2:], 1)
    if k is not None:
        rows = context.add("add", rows, reshape(context, k, ()))
    # Upper: column >= row + k; lower: column <= row + k.
    upper = context.bool_attribute("upper", default=True)
    kept = (
        context.add("less_equal", rows, columns)
        if upper
        else context.add("less_equal", columns, rows)
    )
    return (context.add("select", kept, x, context.scalar(context.dtype_of(x), 0)),)


def _unsqueeze(context: OpContext) -> Sequence[int]:
    """Axes of size 1 added; axes are an attribute before opset 13, then an operand.

    In: a tensor and axes of the result, known or computed at run time. Out: core ``reshape``.
    """
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    operand = context.operand(1) if context.opset >= 13 else None
    axes = context.ints_or("axes", ()) if operand is None else context.known_ints(operand)
    if axes is None:
        assert operand is not None
        return (reshape(context, x, _read_unsqueeze(context, shape, operand)),)
    return (unsqueeze(context, x, counted_axes(axes, len(shape) + len(axes))),)


def _read_unsqueeze(context: OpContext, shape: Sequence[Dim], axes: int) -> tuple[Dim, ...]:
    """The result's sizes: 1 at the axes, else the next of the operand's own."""
    rank = len(shape) + context.count_of(axes)
    flags = axis_flags(context, axes, rank)
    kept = cast(context, context.add("logical_not", flags), "i64")
    slot = context.add("cumsum", kept, axis=0, exclusive=True, reverse=False)
    # The slot behind the last one is read where flags hold only.
    own = context.add("gather", context.integers((*shape, 1)), slot, axis=0)
    return context.read_dims(context.add("select", flags, context.scalar("i64", 1), own))


OPS = (
    OnnxOp("Concat", _concat, since=4),
    OnnxOp("DepthToSpace", _depth_to_space),
    OnnxOp("Expand", _expand),
    OnnxOp("Flatten", _flatten),
    OnnxOp("Identity", _identity),
    OnnxOp("SpaceToDepth", _space_to_depth),
    OnnxOp("Squeeze", _squeeze),
    OnnxOp("Tile", _tile, since=6),
    OnnxOp("Transpose", _transpose),
    OnnxOp("Trilu", _trilu),
    OnnxOp("Unsqueeze", _unsqueeze),
)
