"""ONNX MaxPool: the greatest element per window.

In: x[N, C, spatial..]. Out: core ``max_pool``. Not done here: the optional result Indices (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.windows import pool_attributes


def _translate(context: OpContext) -> Sequence[int]:
    if context.wants(1):
        raise Unsupported("the optional result Indices")
    x = context.operand(0)
    attributes, _ = pool_attributes(context, x)
    return (context.add("max_pool", x, **attributes),)


OP = OnnxOp("MaxPool", _translate)
