"""ONNX CumSum: running sums along an axis.

In: a tensor and an axis, known or computed at run time. Out: core ``cumsum``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.cumulative import cumulative


def _along(context: OpContext, x: int, axis: int) -> int:
    exclusive, reverse = (context.bool_attribute(name) for name in ("exclusive", "reverse"))
    return context.add("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


OP = OnnxOp("CumSum", cumulative(_along))
