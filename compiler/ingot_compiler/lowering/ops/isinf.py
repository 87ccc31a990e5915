"""``isinf``: which signs count is an attribute.

In: a node. Out: its element. Not done here: NaN (never infinite).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """X == inf or x == -inf, as far as the attributes ask."""
    operand = elements.value(node.operands[0], space)
    dtype = elements.dtype(node.operands[0])
    tests = [
        Apply("equal", (operand, Constant(infinity, dtype)), "bool")
        for name, infinity in (("negative", float("-inf")), ("positive", float("inf")))
        if node.flag(name)
    ]
    if not tests:
        return Constant(False, "bool")
    return tests[0] if len(tests) == 1 else Apply("logical_or", tuple(tests), "bool")
