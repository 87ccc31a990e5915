"""ONNX's ops that read or write at computed positions.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    cast,
    concat,
    element,
    less_scalar,
    range_mask,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices, checked_vectors
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.selection import (
    is_true,
    positions_of_true,
    split_index,
)
from ingot_compiler.ir.rules.typing_rules import SCATTER_REDUCTIONS
from ingot_compiler.ir.sizes.ranges import at_most


def _compress(context: OpContext) -> Sequence[int]:
    """The slices along an axis, or the elements, whose condition is true.

    In: a tensor and a bool vector, perhaps shorter than the axis. Out: the slices; their number is
    known at run time only.
    """
    x, condition = context.operand(0), as_vector(context, context.operand(1))
    axis = 0
    if "axis" in context.attributes:
        axis = context.axis_attribute(0, context.rank_of(x))
    else:
        x = as_vector(context, x)
    size, found = context.shape_of(x)[axis], positions_of_true(context, condition)
    if not at_most(context.shape_of(condition)[0], size):
        found = checked_indices(context, found, size)
    return (context.add("gather", x, found, axis=axis),)


def _gather(context: OpContext) -> Sequence[int]:
    """Slices along an axis, picked by indices.

    In: a tensor and integer indices. Out: core ``gather``.
    """
    x, indices = context.operand(0), context.operand(1)
    axis = context.axis_attribute(0, context.rank_of(x))
    picked = checked_indices(context, indices, context.shape_of(x)[axis])
    return (context.add("gather", x, picked, axis=axis),)


def _gather_elements(context: OpContext) -> Sequence[int]:
    """Elements along an axis, picked by indices of the result's shape.

    In: a tensor and integer indices. Out: core ``gather_elements``.
    """
    x, indices = context.operand(0), context.operand(1)
    axis = context.axis_attribute(0, context.rank_of(x))
    picked = checked_indices(context, indices, context.shape_of(x)[axis])
    return (context.add("gather_elements", x, picked, axis=axis),)


def _gather_nd(context: OpContext) -> Sequence[int]:
    """Slices picked by index vectors.

    In: a tensor and integer index vectors. Out: core ``gather_nd``.
    """
    x, indices = context.operand(0), context.operand(1)
    batch_dims = context.int_attribute("batch_dims", 0)
    picked = checked_vectors(context, indices, context.shape_of(x)[max(batch_dims, 0) :])
    return (context.add("gather_nd", x, picked, batch_dims=batch_dims),)


def _non_zero(context: OpContext) -> Sequence[int]:
    """The indices of elements that are not 0.

    In: any tensor. Out: i64[rank, count], the count known at run time only.
    """
    x = context.operand(0)
    shape = context.shape_of(x)
    found = positions_of_true(context, is_true(context, as_vector(context, x)))
    (count,) = context.shape_of(found)
    if not shape:
        return (reshape(context, slice_axis(context, found, 0, 0, 0), (0, count)),)
    parts = split_index(context, found, shape, is_inside=True)
    rows = [reshape(context, part, (1, count)) for part in parts]
    return (concat(context, rows, 0),)


def _one_hot(context: OpContext) -> Sequence[int]:
    """Two values, the second where the position along a new axis equals the index.

    In: indices, depth (known or computed at run time), values [off, on]. Out: core ``equal``,
    ``select``.
    """
    indices = cast(context, context.operand(0), "i64")
    depth = cast(context, reshape(context, context.operand(1), (1,)), "i64")
    size = context.read_dims(depth)[0]
    rank = context.rank_of(indices) + 1
    axis = context.axis_attribute(-1, rank)
    wrapped = context.add(
        "select",
        less_scalar(context, indices, 0),
        context.add("add", indices, reshape(context, depth, ())),
        indices,
    )
    positions = range_mask(context, [size if axis == other else 1 for other in range(rank)], axis)
    hot = context.add("equal", unsqueeze(context, wrapped, (axis,)), positions)
    values = context.operand(2)
    return (context.add("select", hot, element(context, values, 1), element(context, values, 0)),)


def _scatter_elements(context: OpContext) -> Sequence[int]:
    """A copy of a tensor with elements replaced or combined.

    In: a tensor, indices and updates of one shape. Out: core ``scatter_elements``.
    """
    x, indices, updates = (context.operand(position) for position in range(3))
    axis = context.axis_attribute(0, context.rank_of(x))
    combine = context.string_attribute("reduction", "none", SCATTER_REDUCTIONS)
    places = checked_indices(context, indices, context.shape_of(x)[axis])
    return (context.add("scatter_elements", x, places, updates, axis=axis, reduction=combine),)


SCATTER_ELEMENTS = OnnxOp("ScatterElements", _scatter_elements)


def _scatter_nd(context: OpContext) -> Sequence[int]:
    """A copy of a tensor with slices replaced or combined.

    In: a tensor, index vectors and updates. Out: core ``scatter_nd``.
    """
    x, indices, updates = (context.operand(position) for position in range(3))
    combine = context.string_attribute("reduction", "none", SCATTER_REDUCTIONS)
    places = checked_vectors(context, indices, context.shape_of(x))
    return (context.add("scatter_nd", x, places, updates, reduction=combine),)


OPS = (
    OnnxOp("Compress", _compress),
    OnnxOp("Gather", _gather),
    OnnxOp("GatherElements", _gather_elements),
    OnnxOp("GatherND", _gather_nd),
    OnnxOp("NonZero", _non_zero),
    OnnxOp("OneHot", _one_hot),
    SCATTER_ELEMENTS,
    OnnxOp("Scatter", SCATTER_ELEMENTS.translate),
    OnnxOp("ScatterND", _scatter_nd),
)
