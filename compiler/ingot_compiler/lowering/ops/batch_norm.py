"""``batch_norm`` whose parameters are made at run time (constant ones are folded by a pass; ONNX
BatchNormalization-15).

In: a node. Out: its element. Not done here: statistics.
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Value
from ingot_compiler.lowering.ops.element import ElementScope


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, parameters by channel (axis 1)."""
    dtype = elements.dtype(node.results[0])
    epsilon = node.real("epsilon")
    channel = space.index(1)

    def parameter(position: int) -> Value:
        operand = elements.operand(node, position)
        return elements.load(operand, point(operand.type.shape, (channel,)))

    def apply(function: str, *arguments: Value) -> Value:
        return Apply(function, arguments, dtype)

    deviation = apply("sqrt", apply("add", parameter(4), Constant(epsilon, dtype)))
    centred = apply("sub", elements.value(node.operands[0], space), parameter(3))
    return apply("add", apply("mul", apply("div", centred, deviation), parameter(1)), parameter(2))
