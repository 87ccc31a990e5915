"""Ops whose element is a function of the operands' elements, or of its place.

In: a node and a point of its result. Out: its element. Not done here: ops that are the function of
their own name (``apply_rule``), the arithmetic (``codegen/emit/math``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.loops.interpret_scalars import cast
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, FromIndex, Value
from ingot_compiler.lowering.ops.element import ElementScope, apply_rule


def batch_norm(elements: ElementScope, node: Node, space: Space) -> Value:
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias``, parameters by channel (axis 1), where
    they are made at run time: a pass folds constant ones (ONNX BatchNormalization-15)."""
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


def dim_values(elements: ElementScope, node: Node, space: Space) -> Value:
    """``values[index]`` as a chain of selects; sizes that are only known after other kernels are
    ``SymbolRead``."""
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


def gelu(elements: ElementScope, node: Node, space: Space) -> Value:
    """``gelu_none`` or ``gelu_tanh`` of the operand."""
    return apply_rule(f"gelu_{node.text('approximate')}")(elements, node, space)


def iota(elements: ElementScope, node: Node, space: Space) -> Value:
    """The index along axis 0; start and step are ``mul`` and ``add``."""
    return FromIndex(space.index(0), elements.dtype(node.results[0]))


def isinf(elements: ElementScope, node: Node, space: Space) -> Value:
    """``x == inf`` or ``x == -inf``, by the attributes; NaN is no infinity."""
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


def literal(elements: ElementScope, node: Node, space: Space) -> Value:
    """A number of rank 0 in the code, rounded to its type; literals with axes are constants."""
    del space
    dtype = elements.dtype(node.results[0])
    return Constant(cast(node.numbers("value")[0], dtype), dtype)


def require(elements: ElementScope, node: Node, space: Space) -> Value:
    """``x``, behind a ``Require`` of the condition, whose message ``main_program`` has, so that equal
    kernels stay equal."""
    value, condition = (elements.value(operand, space) for operand in node.operands)
    elements.require(node, condition)
    return value
