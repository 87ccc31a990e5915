"""ONNX Runtime Unique: ONNX's own op in the order of the input.

In: a vector. Out: values, for each element the place of its value, counts. Not done here: the
op.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    wanted = (True, False, context.wants(1), context.wants(2))
    operands = [context.operand(0)]
    found = results_of(context, "Unique", operands, {"sorted": 0}, wanted=wanted)
    return found[0], *found[2:]


OP = OnnxOp("Unique", _translate, signature="x -> y idx counts")
