"""``gelu``: the attribute ``approximate`` picks the function.

In: a node. Out: its element. Not done here: the arithmetic (``codegen/math/gelu.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.loops import Value
from ingot_compiler.lowering.ops.element import apply_rule
from ingot_compiler.lowering.space import Space

if TYPE_CHECKING:
    from ingot_compiler.lowering.elements import Elements


def element(elements: Elements, node: Node, space: Space) -> Value:
    """``gelu_none`` or ``gelu_tanh`` of the operand."""
    return apply_rule(f"gelu_{node.text('approximate')}")(elements, node, space)
