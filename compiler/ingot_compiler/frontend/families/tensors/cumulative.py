"""CumSum and CumProd: running results along an axis that is an operand.

In: what computes along one axis. Out: a ``Translate`` function. Not done here: what is computed
(``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import chosen_along
from ingot_compiler.frontend.build.onnx_op import Translate
from ingot_compiler.frontend.build.operand_sizes import sizes_from
from ingot_compiler.frontend.model.onnx_node import counted_axis


def cumulative(along: Callable[[OpContext, int, int], int]) -> Translate:
    """``along(context, x, axis)`` for the axis of operand 1."""

    def translate(context: OpContext) -> Sequence[int]:
        x, axis = context.operand(0), reshape(context, context.operand(1), ())
        rank, known = len(sizes_from(context, x, 1)), context.known_ints(axis)
        if known is not None:
            return (along(context, x, counted_axis(known[0], rank)),)
        # An axis that comes at run time: all results, and one is chosen.
        results = [along(context, x, other) for other in range(rank)]
        return (chosen_along(context, axis, results, rank),)

    return translate
