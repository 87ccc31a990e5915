"""ONNX Gelu: x * (1 + erf(x / sqrt(2))) / 2, or its tanh approximation.

In: a float tensor. Out: core ``gelu``. Not done here: Gelu that exporters write as several nodes
(``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    approximate = context.string_attribute("approximate", "none", ("none", "tanh"))
    return (context.add("gelu", context.operand(0), approximate=approximate),)


OP = OnnxOp("Gelu", _translate)
