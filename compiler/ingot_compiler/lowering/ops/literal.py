"""``literal`` of rank 0: a number in the code.

In: a node. Out: its element. Not done here: literals with axes (they are constants in the weights
section).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.interpret_scalars import cast
from ingot_compiler.lowering.loops.loop_values import Constant, Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """The number, rounded to its type."""
    del space
    dtype = elements.dtype(node.results[0])
    return Constant(cast(node.numbers("value")[0], dtype), dtype)
