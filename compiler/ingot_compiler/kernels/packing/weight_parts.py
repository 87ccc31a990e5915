"""Constant weights of f32 as sums of bf16, as expressions that the build folds.

In: the expression of weights. Out: those of a part, and of the greatest magnitude. Not done here:
packing (``packing``), parts of what a kernel computes (``float_parts``).

A part is what is left, rounded to bf16, but never to infinity: the sum of all parts is the weight,
infinities and NaN as well. Of a weight below 2^-108, 2^-134 may be missing.
"""

from __future__ import annotations

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.graph import Graph
from ingot_compiler.kernels.packing.packing import extend

_GREATEST_BF16 = (2 - 2.0**-7) * 2.0**127


def weight_part(weights: Graph, number: int) -> Graph:
    """Part ``number`` of weights of f32, the greatest one is 0."""
    builder = GraphBuilder(())
    for node in weights.nodes:
        builder.add(node.op, node.operands, node.table)
    (rest,) = weights.outputs
    for _ in range(number):
        part = builder.add("cast", [_rounded(builder, rest)], {"dtype": "f32"})
        rest = builder.add("sub", [rest, part])
    return builder.finish((_rounded(builder, rest),))


def _rounded(builder: GraphBuilder, value: int) -> int:
    """In bf16, and finite where the value is."""
    for limit, is_least in ((-_GREATEST_BF16, True), (_GREATEST_BF16, False)):
        literal: dict[str, Attribute] = {"dtype": "f32", "shape": (), "value": (limit,)}
        bound = builder.add("literal", [], literal)
        value = builder.add("max" if is_least else "min", [value, bound])
    return builder.add("cast", [value], {"dtype": "bf16"})


def greatest_magnitude(weights: Graph) -> Graph:
    """``[1]``, f32; NaN where one is."""
    shape = weights.types[weights.outputs[0]].shape
    axes = tuple(range(len(shape)))
    attributes: dict[str, Attribute] = {"axes": axes, "function": "max", "keepdims": False}
    greatest = extend(extend(weights, "abs", {}), "reduce", attributes)
    return extend(greatest, "reshape", {"shape": (1,)})
