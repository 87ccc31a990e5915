"""ONNX Mean: the mean of all operands, elementwise with broadcasting.

In: one or more float tensors. Out: core ``add``, ``div``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.direct import chained
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    values = context.given()
    total = chained("add")(context)[0]
    return (total if len(values) == 1 else binary_scalar(context, "div", total, len(values)),)


OP = OnnxOp("Mean", _translate)
