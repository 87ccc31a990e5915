"""``iota``: the index itself.

In: a node. Out: its element. Not done here: start and step (``mul`` and ``add``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import FromIndex, Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """The index along axis 0."""
    return FromIndex(space.index(0), elements.dtype(node.results[0]))
