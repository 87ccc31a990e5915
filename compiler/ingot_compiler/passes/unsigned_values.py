"""Pass: values that are quantized to i8 are quantized to u8, whose zero point is 128 higher.

In: a graph as the frontend wrote it. Out: a graph where what dequantizes an i8 value that a
QuantizeLinear with a known zero point makes reads the same number as u8. Not done here: weights,
whose sign is the one that processors multiply by.

``clamp(r + z, -128, 127) - z`` is ``clamp(r + z + 128, 0, 255) - (z + 128)``. Processors multiply
u8 by i8: a value of i8 would be flipped by a step of its own, which also stands between a product
and the layout that it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.quantized_values import number, quantized
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_FLIP, _HIGHEST = 128, 255


def unsigned_values(graph: Graph) -> Graph:
    """Let dequantization read values of u8."""
    return rewrite(graph, rule, ("cast", "sub"))


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for the wide form of an i8 value, and for that less its zero point."""
    if node.op == "cast":
        found = _widened(state, node)
    elif node.op == "sub":
        found = _centred(state, node)
    else:
        found = None
    return None if found is None else (found,)


def _widened(state: Rewriter, node: Node) -> int | None:
    """``cast(u8) - 128`` for the cast of an i8 value."""
    source = state.made_by(node.operands[0], "cast")
    if source is None or state.type_of(source.results[0]).dtype != "i8":
        return None
    wide = state.type_of(node.results[0]).dtype
    if wide not in ("i16", "i32", "f32", "f64"):
        return None
    unsigned = _unsigned(state, source)
    if unsigned is None:
        return None
    value = state.emit("cast", (unsigned,), node.table, node.source)
    return state.emit("sub", (value, _literal(state, _FLIP, value)), {}, node.source)


def _unsigned(state: Rewriter, source: Node) -> int | None:
    """The u8 form of a QuantizeLinear to i8."""
    found = quantized(state, source)
    if found is None or state.is_constant(found.quotient):
        return None
    zero = 0 if found.zero is None else number(state, found.zero)
    if zero is None:
        return None
    value = state.emit("round", (found.quotient,), {}, source.source)
    steps: tuple[tuple[OpName, float], ...] = (("add", zero + _FLIP), ("max", 0), ("min", _HIGHEST))
    for op, operand in steps:
        value = state.emit(op, (value, _literal(state, operand, value)), {}, source.source)
    return state.emit("cast", (value,), {"dtype": "u8"}, source.source)


def _centred(state: Rewriter, node: Node) -> int | None:
    """``cast(u8) - (z + 128)`` for ``(cast(u8) - 128) - z``."""
    inner = state.made_by(node.operands[0], "sub")
    wide = None if inner is None else state.made_by(inner.operands[0], "cast")
    if inner is None or wide is None or state.type_of(wide.operands[0]).dtype != "u8":
        return None
    moved, zero = number(state, inner.operands[1]), number(state, node.operands[1])
    if moved != _FLIP or zero is None or zero not in range(-_FLIP, _FLIP):
        return None
    value = inner.operands[0]
    return state.emit("sub", (value, _literal(state, zero + moved, value)), {}, node.source)


def _literal(state: Rewriter, whole: float, like: int) -> int:
    """A whole number in the element type of the value ``like``."""
    dtype = state.type_of(like).dtype
    value = float(whole) if dtype in FLOATS else int(whole)
    return state.literal(value, dtype, ())
