"""ai.onnx.ml Imputer: a value for each column in the place of what stands for a missing one.

In: x[N, n]. Out: the same element type. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import numbers_of, vector_of
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype, shape = context.dtype_of(x), context.shape_of(x)
    values = _values(context)
    count, columns = context.shape_of(values)[0], shape[-1] if shape else 1
    fits = count in (1, columns) or not isinstance(columns, int)
    require(fits, f"1 or {columns} imputed values", count)
    values = cast(context, values, dtype)
    return (context.add("select", _missing(context, x), values, x),)


def _values(context: OpContext) -> int:
    floats, whole = (
        vector_of(context, "imputed_value_floats"),
        numbers_of(context, "imputed_value_int64s"),
    )
    if floats is not None:
        return floats
    if not whole:
        raise OpTypeError("imputed_value_floats or imputed_value_int64s", "neither")
    return context.integers(whole)


def _missing(context: OpContext, x: int) -> int:
    """Where x is what stands for a missing value."""
    dtype = context.dtype_of(x)
    if dtype in FLOATS:
        stands = context.float_attribute("replaced_value_float", 0.0)
        if isnan(stands):
            return context.add("isnan", x)
        return context.add("equal", x, context.scalar(dtype, stands))
    whole = context.int_attribute("replaced_value_int64", 0)
    return context.add("equal", x, context.scalar(dtype, whole))


OP = OnnxOp("Imputer", _translate)
