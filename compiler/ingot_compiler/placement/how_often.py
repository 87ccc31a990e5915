"""How often what is inside of control flow runs in one call, as far as decisions of cost assume it.

In: a node of control flow. Out: a factor per region. Not done here: what runs there (``op_work``).

One branch of an ``if`` is as likely as the other. A body runs as often as its loop says; a number
of iterations that is open counts as other open sizes do, and as the trip count where that is a
literal and less.
"""

from __future__ import annotations

from ingot_compiler.ir.attributes import attribute_dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops.loop import counted_before
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.placement.op_work import Setting

OFTEN_MAX = float(1 << 16)
"""More than that decides nothing else; sums of picoseconds stay far below what is forbidden."""


def how_often(node: Node, setting: Setting, around: float) -> tuple[float, ...]:
    """How often each region of a node of control flow runs in a call; ``around``: how often
    the node does."""
    if node.op == "if":
        return tuple(around / len(node.regions) for _ in node.regions)
    return (min(around * _iterations(node, setting), OFTEN_MAX),)


def times_over(picoseconds: int, often: float) -> int:
    """How long something takes that is done so often."""
    return picoseconds if often == 1 else round(picoseconds * often)


def _iterations(node: Node, setting: Setting) -> int:
    """How often the body of a loop runs."""
    count = max(0, typical(attribute_dim(node.table, "iterations")))
    limit = setting.makers.get(node.operands[0])
    if counted_before(node.table) or limit is None or limit.op != "literal":
        return count
    return min(count, max(0, int(limit.numbers("value")[0])))
