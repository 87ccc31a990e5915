"""``scatter_nd(x, indices, updates){reduction}``: x with slices replaced or combined (ONNX
ScatterND-18).

In: x[d..], integers [i.., k] (k a fixed integer in [1, rank]), updates[i.., d[k:]] of x's element
type. Out: x's type. With "none" the last update in row-major order wins. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_str, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal_shapes, sizes_of
from ingot_compiler.ir.rules.reference_rules import open_grid, scatter
from ingot_compiler.ir.rules.typing_rules import (
    INTEGERS,
    SCATTER_REDUCTIONS,
    require_dtype,
    require_operands,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "reduction")
    require_operands(types, 3)
    x, indices, updates = types
    require_dtype(indices, INTEGERS)
    require_same_dtype((x, updates))
    require(indices.rank >= 1, "indices of rank >= 1", indices)
    depth = indices.shape[-1]
    if not isinstance(depth, int) or not 1 <= depth <= x.rank:
        raise OpTypeError(f"index vectors of 1 to {x.rank} elements", indices)
    of_x, of_indices, of_updates = (sizes_of(types, operand) for operand in range(3))
    slices = (*of_indices[:-1], *of_x[depth:])
    same = equal_shapes("sizes of the picked slices and updates", slices, of_updates)
    attribute_str(attributes, "reduction", SCATTER_REDUCTIONS)
    picked = (bound for size in x.shape[:depth] for bound in elements_along(size, updates.shape))
    return Inferred((x,), (*same, *picked))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices, updates = operands
    depth = indices.shape[-1]
    inner = x.shape[depth:]
    # Index every element of the picked slices, so that repeated indices combine in row-major order.
    picked = [
        indices[..., column].astype(np.int64).reshape(*indices.shape[:-1], *[1] * len(inner))
        for column in range(depth)
    ]
    index = tuple(np.broadcast_to(part, updates.shape) for part in (*picked, *open_grid(inner)))
    return (scatter(x, index, updates, attribute_str(attributes, "reduction")),)


OP = CoreOp("scatter_nd", _infer, _reference, traits=Trait.INDEXED)
