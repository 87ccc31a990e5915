"""ONNX Pow: x^y elementwise, in the element type of x.

In: x and y, perhaps of different types. Out: core ``pow``, ``cast``. Not done here: types
(``ir/ops``).

The power is computed in a type that holds both, as ``onnx.reference`` does, and rounded to that of
x: an exponent keeps its last bit, which decides the sign. A negative integer exponent of an
integer, which numpy refuses and ONNX leaves open, gives the truncated reciprocal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bytes

_EXACT_MAX: dict[DType, int] = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}


def _translate(context: OpContext) -> Sequence[int]:
    x, y = context.operand(0), context.operand(1)
    dtype = context.dtype_of(x)
    wide = _wide(context, dtype, y)
    return (
        cast(context, context.add("pow", cast(context, x, wide), cast(context, y, wide)), dtype),
    )


def _wide(context: OpContext, dtype: DType, y: int) -> DType:
    """The type to compute in: that of x where it holds every exponent there is."""
    exponent = context.dtype_of(y)
    if exponent == dtype or (dtype in FLOATS and _is_held(context, dtype, y)):
        return dtype
    if dtype not in FLOATS and exponent not in FLOATS:
        # Modulo 2^64, powers of the low bits have the same low bits.
        return "u64" if exponent in UNSIGNED else "i64"
    return "f32" if _fits_f32(dtype) and _fits_f32(exponent) else "f64"


def _is_held(context: OpContext, dtype: DType, y: int) -> bool:
    """Whether all exponents are known, and halves of whole numbers that a float type holds."""
    known_values = context.known_values(y)
    return known_values is not None and all(
        isinstance(item, (int, float))
        and abs(item) <= _EXACT_MAX[dtype] / 2
        and (2 * item) % 1 == 0
        for item in known_values.flat
    )


def _fits_f32(dtype: DType) -> bool:
    return dtype in ("f32", "f16", "bf16") or dtype_size_bytes(dtype) <= 2


OP = OnnxOp("Pow", _translate)
