"""ONNX Momentum: one step of the optimizer, for any number of tensors; also Nesterov's.

In: rate, step count, tensors, gradients, velocities. Out: new tensors, new velocities. Not done
here: types (``ir/ops``). Source: ONNX ai.onnx.preview.training Momentum-1.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.training.optimizer_steps import regularized, step_each


def _step(context: OpContext, rate: int, count: int, values: Sequence[int]) -> Sequence[int]:
    x, gradient, velocity = values
    alpha, beta = context.float_attribute("alpha", 0.0), context.float_attribute("beta", 0.0)
    gradient = regularized(context, x, gradient)
    dtype = context.dtype_of(count)
    is_later = context.add("less", context.scalar(dtype, 0.0), count)
    weight = context.add(
        "select", is_later, context.scalar(dtype, beta), context.scalar(dtype, 1.0)
    )
    added = context.add("mul", weight, gradient)
    velocity = context.add("add", scaled(context, velocity, alpha), added)
    change = velocity
    if context.string_attribute("mode", "standard", ("standard", "nesterov")) == "nesterov":
        change = context.add("add", gradient, scaled(context, velocity, alpha))
    return context.add("sub", x, context.add("mul", rate, change)), velocity


def _translate(context: OpContext) -> Sequence[int]:
    return step_each(context, _step, 1)


OP = OnnxOp("Momentum", _translate)
