"""The optimizers of ONNX's training domain.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.training.optimizer_steps import regularized, step_each


def _step_adagrad(
    context: OpContext, rate: int, count: int, values: Sequence[int]
) -> Sequence[int]:
    x, gradient, squares = values
    decay = scaled(context, count, context.float_attribute("decay_factor", 0.0))
    rate = context.add("div", rate, binary_scalar(context, "add", decay, 1.0))
    gradient = regularized(context, x, gradient)
    squares = context.add("add", squares, context.add("mul", gradient, gradient))
    epsilon = context.float_attribute("epsilon", 1e-6)
    root = binary_scalar(context, "add", context.add("sqrt", squares), epsilon)
    change = context.add("div", context.add("mul", rate, gradient), root)
    return context.add("sub", x, change), squares


def _adagrad(context: OpContext) -> Sequence[int]:
    """One step of the optimizer, for any number of tensors.

    In: rate, step count, tensors, gradients, sums of squares. Out: new tensors, new sums.
    """
    return step_each(context, _step_adagrad, 1)


def _step_adam(context: OpContext, rate: int, count: int, values: Sequence[int]) -> Sequence[int]:
    x, gradient, mean, square = values
    alpha, beta = context.float_attribute("alpha", 0.9), context.float_attribute("beta", 0.999)
    gradient = regularized(context, x, gradient)
    mean = _average(context, mean, gradient, alpha)
    square = _average(context, square, context.add("mul", gradient, gradient), beta)
    epsilon = context.float_attribute("epsilon", 1e-6)
    root = binary_scalar(context, "add", context.add("sqrt", square), epsilon)
    rate = _adjusted(context, rate, count, alpha, beta)
    x = context.add("sub", x, context.add("mul", rate, context.add("div", mean, root)))
    kept = 1.0 - context.float_attribute("norm_coefficient_post", 0.0)
    return scaled(context, x, kept), mean, square


def _average(context: OpContext, old: int, new: int, weight: float) -> int:
    """``weight * old + (1 - weight) * new``."""
    return context.add("add", scaled(context, old, weight), scaled(context, new, 1.0 - weight))


def _adjusted(context: OpContext, rate: int, count: int, alpha: float, beta: float) -> int:
    """The rate without the bias of averages that began at 0; as it is at the first step."""
    of_square, of_mean = (_missing(context, count, weight) for weight in (beta, alpha))
    factor = context.add("div", context.add("sqrt", of_square), of_mean)
    is_later = context.add("less", context.scalar(context.dtype_of(count), 0.0), count)
    return context.add("select", is_later, context.add("mul", rate, factor), rate)


def _missing(context: OpContext, count: int, weight: float) -> int:
    """``1 - weight ** count``."""
    dtype = context.dtype_of(count)
    power = context.add("pow", context.scalar(dtype, weight), count)
    return context.add("sub", context.scalar(dtype, 1.0), power)


def _adam(context: OpContext) -> Sequence[int]:
    """One step of the optimizer, for any number of tensors.

    In: rate, step count, tensors, gradients, averages of gradients and of their squares. Out: new
    tensors, new averages.
    """
    return step_each(context, _step_adam, 2)


def _step_momentum(
    context: OpContext, rate: int, count: int, values: Sequence[int]
) -> Sequence[int]:
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


def _momentum(context: OpContext) -> Sequence[int]:
    """One step of the optimizer, for any number of tensors; also Nesterov's.

    In: rate, step count, tensors, gradients, velocities. Out: new tensors, new velocities.
    """
    return step_each(context, _step_momentum, 1)


OPS = (
    OnnxOp("Adagrad", _adagrad),
    OnnxOp("Adam", _adam),
    OnnxOp("Momentum", _momentum),
)
