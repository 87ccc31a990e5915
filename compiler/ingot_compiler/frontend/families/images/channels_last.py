"""Images whose channels come last, for ops that know them first.

In: a context and a value. Out: the value with its channels moved. Not done here: the ops.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.op_type_error import OpTypeError


def to_first(context: OpContext, x: int) -> int:
    """x[N, spatial.., C] as [N, C, spatial..]."""
    rank = context.rank_of(x)
    if rank < 3:
        raise OpTypeError("x[N, spatial.., C] of rank >= 3", context.type_of(x))
    return transpose(context, x, (0, rank - 1, *range(1, rank - 1)))


def to_last(context: OpContext, x: int) -> int:
    """x[N, C, spatial..] as [N, spatial.., C]."""
    rank = context.rank_of(x)
    return transpose(context, x, (0, *range(2, rank), 1))
