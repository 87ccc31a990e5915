"""ONNX CumSum: running sums along an axis.

In: a tensor and an axis, known or computed at run time. Out: core ``cumsum``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import binary_scalar, cast, less_scalar, reshape
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, axis = context.operand(0), reshape(context, context.operand(1), ())
    rank, known = context.rank_of(x), context.known_ints(axis)
    if known is not None:
        return (_along(context, x, context.axis(known[0], rank)),)
    # An axis that comes at run time: all sums, and one is chosen.
    scalar = cast(context, axis, "i64")
    wrapped = context.add(
        "select", less_scalar(context, scalar, 0), binary_scalar(context, "add", scalar, rank), scalar
    )
    result = _along(context, x, 0)
    for other in range(1, rank):
        chosen = binary_scalar(context, "equal", wrapped, other)
        result = context.add("select", chosen, _along(context, x, other), result)
    return (result,)


def _along(context: OpContext, x: int, axis: int) -> int:
    exclusive, reverse = context.int_attribute("exclusive", 0), context.int_attribute("reverse", 0)
    return context.add("cumsum", x, axis=axis, exclusive=bool(exclusive), reverse=bool(reverse))


OP = OnnxOp("CumSum", _translate)
