"""``grouped_matmul(a, groups, b)``: each row by the matrix that its group names, as the experts of a
mixture multiply tokens (torch._grouped_mm, with rows in any order).

In: a [P, K] and b [G, K, N] of one float type; groups i64 [P], of which one outside of [0, G)
stands for the nearest one inside. Out: [P, N]. Not done here: which rows belong to a group
(``kernels.products.rows_by_group``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal, sizes_of
from ingot_compiler.ir.rules.reference_rules import narrow, widen
from ingot_compiler.ir.rules.typing_rules import (
    require_dtype,
    require_operands,
    require_rank,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType

GROUPS: frozenset[DType] = frozenset(("i64",))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 3)
    require_same_dtype(types[::2])
    require_dtype(types[0], FLOATS)
    require_dtype(types[1], GROUPS)
    for tensor, rank in zip(types, (2, 1, 3), strict=True):
        require_rank(tensor, rank)
    a, _, b = types
    result = TensorType(a.dtype, (a.shape[0], b.shape[2]))
    inner = equal("inner sizes", sizes_of(types, 0)[1], sizes_of(types, 2)[1])
    rows = equal("rows and groups", sizes_of(types, 0)[0], sizes_of(types, 1)[0])
    return Inferred((result,), (inner, rows, *elements_along(b.shape[0], result.shape)))


def _reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    a, groups, b = operands
    of_rows = nearest_group(groups, len(b))
    result = np.zeros((len(a), b.shape[2]), widen(a).dtype)
    with np.errstate(all="ignore"):
        for group in np.unique(of_rows):
            rows = of_rows == group
            result[rows] = widen(a[rows]) @ widen(b[group])
        return (narrow(result, a),)


def nearest_group(groups: Array, count: int) -> Array:
    """The groups that ``groups`` stand for."""
    return np.clip(groups.astype(np.int64), 0, count - 1)


OP = CoreOp("grouped_matmul", _infer, _reference, traits=Trait.DENSE)
