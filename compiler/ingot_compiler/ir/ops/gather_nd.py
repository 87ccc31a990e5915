"""``gather_nd(x, indices){batch_dims}``: slices of x, each picked by a vector of indices (ONNX
GatherND-13).

In: x[b.., d..] and integers [b.., i.., k], b.. the ``batch_dims`` leading axes, k >= 1 a fixed
integer. Out: x's element type, shape b.. + i.. + d[k:]. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal_shapes
from ingot_compiler.ir.rules.reference_rules import open_grid
from ingot_compiler.ir.rules.typing_rules import INTEGERS, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices = operands
    count = attribute_int(attributes, "batch_dims")
    # One open grid per batch axis, then one index array per gathered axis; all broadcast over
    # indices[.., :].
    outer = indices.shape[:-1]
    grids = open_grid(outer)[:count]
    picked = tuple(indices[..., column].astype(np.int64) for column in range(indices.shape[-1]))
    return (x[(*grids, *picked)],)


OP = CoreOp("gather_nd", _infer, _reference, traits=Trait.INDEXED)
