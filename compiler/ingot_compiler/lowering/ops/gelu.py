"""``gelu``: the attribute ``approximate`` picks the function.

In: a node. Out: its element. Not done here: the arithmetic (``codegen/emit/math``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import Value
from ingot_compiler.lowering.ops.element import ElementScope, apply_rule


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """``gelu_none`` or ``gelu_tanh`` of the operand."""
    return apply_rule(f"gelu_{node.text('approximate')}")(elements, node, space)
