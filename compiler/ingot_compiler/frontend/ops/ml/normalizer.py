"""ai.onnx.ml Normalizer: rows divided by their norm; a row of zeros stays.

In: x[N, n], or one row. Out: f32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, cast, reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import require

_LEAST = 1e-30  # of a divisor, as in ONNX's reference


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    require(context.rank_of(x) >= 1, "x[N, n], or one row", context.type_of(x))
    x = cast(context, x, "f64" if context.dtype_of(x) == "f64" else "f32")
    norm = _norm(context, x, context.string_attribute("norm", "MAX", ("MAX", "L1", "L2")))
    norm = binary_scalar(context, "max", norm, _LEAST)
    return (cast(context, context.add("div", x, norm), "f32"),)


def _norm(context: OpContext, x: int, name: str) -> int:
    axes = (context.rank_of(x) - 1,)
    if name == "L2":
        squares = reduce(context, context.add("mul", x, x), "sum", axes, keepdims=True)
        return context.add("sqrt", squares)
    size = context.add("abs", x)
    return reduce(context, size, "max" if name == "MAX" else "sum", axes, keepdims=True)


OP = OnnxOp("Normalizer", _translate)
