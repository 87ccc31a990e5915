"""Pass: the scales of an integer product and of its quantisation are one factor.

In: a graph with integer products. Out: a graph where ``round((acc * s + b) / t)`` is
``round(acc * (s / t) + b / t)``; the factors are ops on constants, folded. Not done here: anything
between the two that is no sum or limit.

The quotient is rounded in other places than ONNX does: it differs by some units in the last place
of f32, which decides only where it lies that near to the middle of two integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.quantised_values import is_positive
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_DEPTH_MAX = 8


def scale_once(graph: Graph) -> Graph:
    """Divide factors instead of sums."""
    return rewrite(graph, rule, ("round",))


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for the rounding of a quotient."""
    quotient = state.made_by(node.operands[0], "div") if node.op == "round" else None
    if quotient is None or not is_positive(state, quotient.operands[1]):
        return None
    value, scale = quotient.operands
    found = _divided(state, value, scale, node.source, _DEPTH_MAX)
    return None if found is None else (state.emit("round", (found,), {}, node.source),)


def _divided(
    state: Rewriter, value: int, scale: int, source: Sequence[int], depth: int
) -> int | None:
    """``value / scale`` where the division meets constants alone; None where it does not."""
    if state.is_constant(value):
        return state.emit("div", (value, scale), {}, source)
    node = state.made_by(value, "add", "mul", "relu", "min", "max") if depth else None
    if node is None or not state.is_used_once(value):
        return None
    if node.op == "mul":
        return _scaled(state, node, scale, source)
    parts = [_divided(state, operand, scale, source, depth - 1) for operand in node.operands]
    known = [part for part in parts if part is not None]
    return state.emit(node.op, known, {}, source) if len(known) == len(parts) else None


def _scaled(state: Rewriter, node: Node, scale: int, source: Sequence[int]) -> int | None:
    """Integers times a constant, divided."""
    integers, factor = node.operands
    if not (state.is_constant(factor) and _is_integer(state, integers)):
        return None
    divided = state.emit("div", (factor, scale), {}, source)
    return state.emit("mul", (integers, divided), {}, source)


def _is_integer(state: Rewriter, value: int) -> bool:
    """Whether a value was a sum of integers, or a difference of them."""
    difference = state.made_by(value, "sub")
    cast = state.made_by(difference.operands[0] if difference else value, "cast")
    return cast is not None and state.type_of(cast.operands[0]).dtype[0] in "iu"
