"""ONNX LpNormalization: x divided by its p-norm along an axis; 0 where the norm is 0.

In: a float tensor. Out: core ``reduce``, ``div``, ``select``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axis = context.axis_attribute(-1, context.rank_of(x))
    first = context.int_attribute("p", 2) == 1
    powers = context.add("abs", x) if first else context.add("mul", x, x)
    total = reduce(context, powers, "sum", (axis,), keepdims=True)
    norm = total if first else context.add("sqrt", total)
    zero = context.scalar(context.dtype_of(x), 0)
    return (
        context.add("select", context.add("equal", norm, zero), zero, context.add("div", x, norm)),
    )


OP = OnnxOp("LpNormalization", _translate)
