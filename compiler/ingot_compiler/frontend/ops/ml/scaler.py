"""ai.onnx.ml Scaler: (x - offset) * scale, for each column or for all.

In: x[.., n]. Out: f32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_float, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import vector_of
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x = as_float(context, context.operand(0))
    if context.dtype_of(context.operand(0))[0] in "iu":
        x = cast(context, x, "f32")
    for name, op in (("offset", "sub"), ("scale", "mul")):
        factors = vector_of(context, name)
        if factors is not None:
            count, columns = context.shape_of(factors)[0], (context.shape_of(x) or (1,))[-1]
            fits = count in (1, columns) or not isinstance(columns, int)
            require(fits, f"1 or {columns} entries of {name}", count)
            own = cast(context, factors, context.dtype_of(x))
            x = context.add("sub" if op == "sub" else "mul", x, own)
    return (cast(context, x, "f32"),)


OP = OnnxOp("Scaler", _translate)
