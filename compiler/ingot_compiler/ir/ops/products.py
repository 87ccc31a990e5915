"""Core products of matrices of numbers.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal, sizes_of
from ingot_compiler.ir.rules.reference_rules import in_f64, narrow, widen
from ingot_compiler.ir.rules.typing_rules import (
    NUMBERS,
    matrix_product,
    require_dtype,
    require_operands,
    require_rank,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType

GROUPS: frozenset[DType] = frozenset(("i64",))


def _infer_grouped_matmul(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference_grouped_matmul(
    operands: Sequence[Array], _attributes: Attributes
) -> tuple[Array, ...]:
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


GROUPED_MATMUL = CoreOp(
    "grouped_matmul", _infer_grouped_matmul, _reference_grouped_matmul, traits=Trait.DENSE
)
"""``grouped_matmul(a, groups, b)``: each row by the matrix that its group names, as the experts
of a mixture multiply tokens (torch._grouped_mm, with rows in any order).

In: a [P, K] and b [G, K, N] of one float type; groups i64 [P], of which one outside of [0, G)
stands for the nearest one inside. Out: [P, N].
"""


def _infer_matmul(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    require_same_dtype(types)
    require_dtype(types[0], NUMBERS)
    return matrix_product(types, types[0].dtype)


MATMUL = CoreOp("matmul", _infer_matmul, in_f64(np.matmul), traits=Trait.DENSE)
"""``matmul(a, b)``: matrix products over the last two axes (ONNX MatMul-13, numpy's rule).

In: a[.., M, K] and b[.., K, N] of one element type, ranks >= 2; leading axes broadcast. Out: [..,
M, N]; integers wrap.
"""


# So many products of 16 bits have an exact sum in f64, whose products numpy leaves to BLAS.
_STEP = 1 << 22
NARROW: frozenset[DType] = frozenset(("i8", "u8", "i16"))


def _infer_matmul_integer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 2)
    for tensor in types:
        require_dtype(tensor, NARROW)
    return matrix_product(types, "i32")


def _reference_matmul_integer(
    operands: Sequence[Array], _attributes: Attributes
) -> tuple[Array, ...]:
    a, b = (operand.astype(np.float64) for operand in operands)
    steps = range(0, max(a.shape[-1], 1), _STEP)
    parts = (a[..., at : at + _STEP] @ b[..., at : at + _STEP, :] for at in steps)
    total = sum(part.astype(np.int64) for part in parts)
    return (np.asarray(total).astype(np.int32),)


MATMUL_INTEGER = CoreOp("matmul_integer", _infer_matmul_integer, _reference_matmul_integer)
"""``matmul_integer(a, b)``: matrix products of narrow integers, summed in i32 (ONNX
MatMulInteger-10, zero points taken off).

In: a[.., M, K] and b[.., K, N] of 8- or 16-bit integers, each of its own type, ranks >= 2; leading
axes broadcast. Out: i32 [.., M, N]; sums wrap.
"""


OPS = (
    GROUPED_MATMUL,
    MATMUL,
    MATMUL_INTEGER,
)
