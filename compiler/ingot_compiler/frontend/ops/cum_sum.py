"""ONNX CumSum: running sums along an axis.

In: a tensor and an axis, known or computed at run time. Out: core ``cumsum``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import reshape, sizes_from
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.index_checks import chosen_along
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, axis = context.operand(0), reshape(context, context.operand(1), ())
    rank, known = len(sizes_from(context, x, 1)), context.known_ints(axis)
    if known is not None:
        return (_along(context, x, context.axis(known[0], rank)),)
    # An axis that comes at run time: all sums, and one is chosen.
    return (
        chosen_along(context, axis, [_along(context, x, other) for other in range(rank)], rank),
    )


def _along(context: OpContext, x: int, axis: int) -> int:
    exclusive, reverse = context.int_attribute("exclusive", 0), context.int_attribute("reverse", 0)
    return context.add("cumsum", x, axis=axis, exclusive=bool(exclusive), reverse=bool(reverse))


OP = OnnxOp("CumSum", _translate)
