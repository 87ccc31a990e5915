"""Core ops that read at computed positions, or tell positions.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_dim,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal_shapes
from ingot_compiler.ir.rules.reference_rules import element_index, open_grid
from ingot_compiler.ir.rules.typing_rules import (
    INTEGERS,
    infer_scattered_elements,
    require_dtype,
    require_operands,
    require_sizes,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer_gather(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require_operands(types, 2)
    x, indices = types
    require_dtype(indices, INTEGERS)
    axis = attribute_axis(attributes, x.rank)
    result = TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return Inferred((result,), elements_along(x.shape[axis], result.shape))


def _reference_gather(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices = operands
    return (np.asarray(np.take(x, indices.astype(np.int64), attribute_int(attributes, "axis"))),)


GATHER = CoreOp("gather", _infer_gather, _reference_gather, traits=Trait.INDEXED)
"""``gather(x, indices){axis}``: slices of x along an axis, picked by indices (ONNX Gather-13).

In: any tensor and integers in [-d, d), d the size of the axis (negative ones count from the end).
Out: x's element type, shape x[:axis] + indices + x[axis+1:].
"""


def _infer_gather_elements(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require_operands(types, 2)
    return infer_scattered_elements(types, attributes)


def _reference_gather_elements(
    operands: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...]:
    x, indices = operands
    return (x[element_index(indices, attribute_int(attributes, "axis"))],)


GATHER_ELEMENTS = CoreOp(
    "gather_elements", _infer_gather_elements, _reference_gather_elements, traits=Trait.INDEXED
)
"""``gather_elements(x, indices){axis}``: result[.., i, ..] = x[.., indices[.., i, ..], ..]
(ONNX GatherElements-13).

In: any tensor and integers of the same rank, in [-d, d); beside the axis, indices may be smaller
than x. Out: x's element type, indices' shape.
"""


def _infer_gather_nd(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "batch_dims")
    require_operands(types, 2)
    x, indices = types
    require_dtype(indices, INTEGERS)
    count = attribute_int(attributes, "batch_dims")
    count_end = min(x.rank, indices.rank)
    require(0 <= count < count_end, f"batch_dims in [0, {count_end})", count)
    depth = indices.shape[-1]
    if not isinstance(depth, int) or not 1 <= depth <= x.rank - count:
        raise OpTypeError(f"index vectors of 1 to {x.rank - count} elements", indices)
    batch = equal_shapes("batch sizes", x.shape[:count], indices.shape[:count])
    common = (constraint.common for constraint in batch)
    result = TensorType(x.dtype, (*common, *indices.shape[count:-1], *x.shape[count + depth :]))
    axes = x.shape[count : count + depth]
    picked = (bound for size in axes for bound in elements_along(size, result.shape))
    return Inferred((result,), (*batch, *picked))


def _reference_gather_nd(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices = operands
    count = attribute_int(attributes, "batch_dims")
    # One open grid per batch axis, then one index array per gathered axis; all broadcast over
    # indices[.., :].
    outer = indices.shape[:-1]
    grids = open_grid(outer)[:count]
    picked = tuple(indices[..., column].astype(np.int64) for column in range(indices.shape[-1]))
    return (x[(*grids, *picked)],)


GATHER_ND = CoreOp("gather_nd", _infer_gather_nd, _reference_gather_nd, traits=Trait.INDEXED)
"""``gather_nd(x, indices){batch_dims}``: slices of x, each picked by a vector of indices (ONNX
GatherND-13).

In: x[b.., d..] and integers [b.., i.., k], b.. the ``batch_dims`` leading axes, k >= 1 a fixed
integer. Out: x's element type, shape b.. + i.. + d[k:].
"""


def _infer_positions_of_true(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "count")
    require_operands(types, 1)
    (mask,), count = types, attribute_dim(attributes, "count")
    require(mask.dtype == "bool" and mask.rank == 1, "bool[n]", mask)
    require_sizes((count,), "count")
    return Inferred((TensorType("i64", (count,)),))


def _reference_positions_of_true(
    operands: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...]:
    return (np.flatnonzero(operands[0])[: attribute_int(attributes, "count")].astype(np.int64),)


POSITIONS_OF_TRUE = CoreOp(
    "positions_of_true", _infer_positions_of_true, _reference_positions_of_true, traits=Trait.EXACT
)
"""``positions_of_true{count}``: where the elements of a mask are true, in order (what ONNX
NonZero-13, Compress-11 and NonMaxSuppression-11 are made of).

In: bool[n], of which at least ``count`` are true. Out: i64[count], the first of their positions.
"""


OPS = (
    GATHER,
    GATHER_ELEMENTS,
    GATHER_ND,
    POSITIONS_OF_TRUE,
)
