"""ONNX Pow: x^y elementwise, in the element type of x.

In: x and y, perhaps of different types. Out: core ``pow``, ``cast``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.types import FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    x, y = context.operand(0), context.operand(1)
    dtype, exponent = context.dtype_of(x), context.dtype_of(y)
    if dtype in FLOATS or exponent not in FLOATS:
        return (context.add("pow", x, cast(context, y, dtype)),)
    # An integer to a broken power is computed as a float.
    return (cast(context, context.add("pow", cast(context, x, exponent), y), dtype),)


OP = OnnxOp("Pow", _translate)
