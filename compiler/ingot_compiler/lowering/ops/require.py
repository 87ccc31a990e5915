"""``require``: the value itself; the kernel reports where its condition is false.

In: a node. Out: its element. Not done here: the messages (``main_program`` has them, so that equal
kernels stay equal).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """``x``, behind a ``Require`` of the condition."""
    value, condition = (elements.value(operand, space) for operand in node.operands)
    elements.require(node, condition)
    return value
