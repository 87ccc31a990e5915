"""Pass: the scales of an integer product and of its quantization are one factor.

In: a graph with integer products. Out: a graph where ``round((acc * s + b) / t)`` is
``round(acc * (s / t) + b / t)``; the factors are ops on constants, folded. Not done here: anything
between the two that is no sum or limit.

The quotient is rounded in other places than ONNX does: it differs by some units in the last place
of f32, which decides only where it lies that near to the middle of two integers. Few sums of
products do; of stored integers that are added or quantized again, many quotients are such middles
(of steps of 0.1 and 0.05, every second one), and they are divided as ONNX says.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.passes.quantized_values import is_positive
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_DEPTH_MAX = 8
_PARTS: tuple[OpName, ...] = ("add", "mul", "relu", "min", "max")


def scale_once(graph: Graph) -> Graph:
    """Divide factors instead of sums."""
    return rewrite(graph, rule, ("round",))


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for the rounding of a quotient."""
    quotient = state.made_by(node.operands[0], "div") if node.op == "round" else None
    if quotient is None or not is_positive(state, quotient.operands[1]):
        return None
    value, scale = quotient.operands
    if not _has_sum(state, value, _DEPTH_MAX):
        return None
    found = _divided(state, value, scale, node.source, _DEPTH_MAX)
    return None if found is None else (state.emit("round", (found,), {}, node.source),)


def _has_sum(state: Rewriter, value: int, depth: int) -> bool:
    """Whether a sum of products, in 32 bits, is among what is added up."""
    node = state.made_by(value, *_PARTS) if depth else None
    if node is None:
        return False
    if node.op == "mul":
        cast = _cast_integers(state, node.operands[0])
        return cast is not None and state.type_of(cast.operands[0]).dtype == "i32"
    return any(_has_sum(state, operand, depth - 1) for operand in node.operands)


def _divided(
    state: Rewriter, value: int, scale: int, source: Sequence[int], depth: int
) -> int | None:
    """``value / scale`` where the division meets constants alone; None where it does not."""
    if state.is_constant(value):
        return state.emit("div", (value, scale), {}, source)
    node = state.made_by(value, *_PARTS) if depth else None
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
    if not state.is_constant(factor) or _cast_integers(state, integers) is None:
        return None
    divided = state.emit("div", (factor, scale), {}, source)
    return state.emit("mul", (integers, divided), {}, source)


def _cast_integers(state: Rewriter, value: int) -> Node | None:
    """The cast of integers that a value is, perhaps less a zero point."""
    difference = state.made_by(value, "sub")
    cast = state.made_by(difference.operands[0] if difference else value, "cast")
    is_integer = cast is not None and state.type_of(cast.operands[0]).dtype[0] in "iu"
    return cast if is_integer else None
