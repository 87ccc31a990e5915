"""What the steps of optimizers share: the operands of one tensor, and its gradient with the
regularization.

In: a node ``(rate, step count, tensors.., gradients.., states..)``. Out: new tensors, then the
states of each kind. Not done here: the rule of an optimizer (``ops/training``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.compose import cast, scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.op_type_error import require

Step = Callable[[OpContext, int, int, Sequence[int]], Sequence[int]]
"""(context, rate, step count, (tensor, gradient, states..)) -> (new tensor, new states..); the
scalars have the tensor's element type."""


def step_each(context: OpContext, step: Step, state_count: int) -> tuple[int, ...]:
    """Apply ``step`` to each tensor; all of one kind stand together in operands and results."""
    operands = [context.operand(position) for position in range(len(context.operands))]
    rate, count, *rest = operands
    kinds = 2 + state_count
    require(len(rest) % kinds == 0, f"a multiple of {kinds} tensors", len(rest))
    each = len(rest) // kinds
    columns = [
        step(context, *_scalars(context, rate, count, rest[index]), rest[index::each])
        for index in range(each)
    ]
    return tuple(value for kind in zip(*columns, strict=True) for value in kind)


def _scalars(context: OpContext, rate: int, count: int, tensor: int) -> tuple[int, int]:
    dtype = context.dtype_of(tensor)
    return cast(context, rate, dtype), cast(context, count, dtype)


def regularized(context: OpContext, tensor: int, gradient: int) -> int:
    """The gradient of the loss with ``norm_coefficient / 2 * |x|^2``."""
    weight = context.float_attribute("norm_coefficient", 0.0)
    return context.add("add", scaled(context, tensor, weight), gradient)
