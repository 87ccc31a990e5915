"""The shape of an element rule, and the rule of ops that apply one function to their operands' elements.

In: an op name. Out: an ``ElementRule``. Not done here: the list of ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.loops import Apply, Value
from ingot_compiler.lowering.space import Space

if TYPE_CHECKING:
    from ingot_compiler.lowering.elements import Elements

ElementRule = Callable[["Elements", Node, Space], Value]


def apply_rule(function: str) -> ElementRule:
    """The rule ``function(element of each operand)``."""

    def element(elements: Elements, node: Node, space: Space) -> Value:
        arguments = tuple(elements.value(operand, space) for operand in node.operands)
        return Apply(function, arguments, elements.dtype(node.results[0]))

    return element
