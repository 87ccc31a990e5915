"""ONNX Adagrad: one step of the optimizer, for any number of tensors.

In: rate, step count, tensors, gradients, sums of squares. Out: new tensors, new sums. Not done
here: types (``ir/ops``). Source: ONNX ai.onnx.preview.training Adagrad-1.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.training.optimizer_steps import regularized, step_each


def _step(context: OpContext, rate: int, count: int, values: Sequence[int]) -> Sequence[int]:
    x, gradient, squares = values
    decay = scaled(context, count, context.float_attribute("decay_factor", 0.0))
    rate = context.add("div", rate, binary_scalar(context, "add", decay, 1.0))
    gradient = regularized(context, x, gradient)
    squares = context.add("add", squares, context.add("mul", gradient, gradient))
    epsilon = context.float_attribute("epsilon", 1e-6)
    root = binary_scalar(context, "add", context.add("sqrt", squares), epsilon)
    change = context.add("div", context.add("mul", rate, gradient), root)
    return context.add("sub", x, change), squares


def _translate(context: OpContext) -> Sequence[int]:
    return step_each(context, _step, 1)


OP = OnnxOp("Adagrad", _translate)
