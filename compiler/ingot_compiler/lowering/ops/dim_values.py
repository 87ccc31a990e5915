"""``dim_values``: a short vector of size expressions.

In: a node. Out: its element. Not done here: sizes that are only known after other kernels
(``SymbolRead``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, FromIndex, Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """``values[index]`` as a chain of selects."""
    del elements
    values = node.dims("values")
    if len(values) == 1:
        return FromIndex(values[0], "i64")  # also of rank 0: the iteration of a loop
    index = space.index(0)
    chosen: Value = Constant(0, "i64")
    for position, value in enumerate(values):
        chosen = Apply(
            "select", (Compare("equal", index, position), FromIndex(value, "i64"), chosen), "i64"
        )
    return chosen
