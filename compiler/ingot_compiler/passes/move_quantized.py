"""Pass: what only moves elements moves the integers of a quantized value.

In: a graph as the frontend wrote it. Out: a graph where DequantizeLinear follows the reshapes,
transposes, slices, gathers, concatenations, paddings, maxima and nearest resizes that it came
before, where QuantizeLinear precedes reshapes and transposes, and where quantizing the same
integers again is nothing. Not done here: arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.quantized_values import (
    Centred,
    Dequantized,
    dequantized,
    is_positive,
    is_single,
    number,
    quantized,
)
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite_until_stable

_MOVES = Trait.MOVEMENT | Trait.INDEXED


def move_quantized(graph: Graph) -> Graph:
    """Move dequantization behind movement until it stands before arithmetic."""
    return rewrite_until_stable(graph, rule, _Roots())


class _Roots:
    """QuantizeLinear ends in a cast; no other op that is elementwise moves elements."""

    def __contains__(self, op: OpName, /) -> bool:
        return op == "cast" or Trait.ELEMENTWISE not in OPS_BY_NAME[op].traits


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a movement of dequantized values, or for their quantization."""
    if node.op == "cast":
        found = _quantized_again(state, node)
    elif len(node.results) != 1 or state.type_of(node.results[0]).dtype not in FLOATS:
        found = None
    elif node.op == "concat":
        found = _concat(state, node)
    elif _moves(state, node):
        found = _moved(state, node)
    else:
        found = None
    return None if found is None else (found,)


def _moves(state: Rewriter, node: Node) -> bool:
    """Whether each element of the result is one of operand 0, or 0."""
    if any(state.type_of(operand).dtype in FLOATS for operand in node.operands[1:]):
        return node.op == "pad"
    is_nearest = node.op == "resize" and node.text("mode") == "nearest"
    return is_nearest or node.op == "max_pool" or bool(OPS_BY_NAME[node.op].traits & _MOVES)


def _moved(state: Rewriter, node: Node) -> int | None:
    found = dequantized(state, node.operands[0])
    if found is None:
        return None
    if not (is_single(state, found.scale) and is_single(state, found.centred.zero)):
        return _moved_with_scales(state, node, found)
    if node.op == "max_pool" and not is_positive(state, found.scale):
        return None
    others = node.operands[1:]
    if node.op == "pad":
        if node.text("mode") == "constant" and number(state, others[0]) != 0:
            return None
        others = (_zero_point(state, node, found),)
    integers = (found.centred.integers, *others)
    moved = state.emit(node.op, integers, dict(node.attributes), node.source)
    return _dequantize(state, node, replace(found, centred=_of(found.centred, moved)))


def _of(own: Centred, integers: int) -> Centred:
    return replace(own, integers=integers)


def _zero_point(state: Rewriter, node: Node, dequantized: Dequantized) -> int:
    """What stands for 0.0, as one number of the integers' own type."""
    dtype = state.type_of(dequantized.centred.integers).dtype
    zero = dequantized.centred.zero
    if zero is None:
        return state.literal(0, dtype, node.source)
    flat = in_shape(state, zero, (), node.source)
    return state.emit("cast", (flat,), {"dtype": dtype}, node.source)


def _moved_with_scales(state: Rewriter, node: Node, dequantized: Dequantized) -> int | None:
    """Where scales or zero points change along an axis, they are moved with it."""
    if node.op == "transpose":
        return _transposed(state, node, dequantized)
    if node.op == "reshape" and _joins_columns(state, node, dequantized):
        return _joined(state, node, dequantized)
    return None


def _joins_columns(state: Rewriter, node: Node, dequantized: Dequantized) -> bool:
    """Whether all axes but the first become one, and parameters do not change along the first."""
    before, after = state.shape_of(node.operands[0]), state.shape_of(node.results[0])
    parameters = [
        dequantized.scale,
        *([] if dequantized.centred.zero is None else [dequantized.centred.zero]),
    ]
    shapes = [state.shape_of(parameter) for parameter in parameters]
    same = all(len(shape) < len(before) or shape[0] == 1 for shape in shapes)
    return len(after) == 2 and len(before) > 2 and before[0] == after[0] and same


def _joined(state: Rewriter, node: Node, dequantized: Dequantized) -> int:
    shape, columns = state.shape_of(node.operands[0]), state.shape_of(node.results[0])[1]

    def row(parameter: int) -> int:
        wide = {"shape": (1, *shape[1:])}
        single = state.emit("broadcast_to", (parameter,), wide, node.source)
        return in_shape(state, single, (1, columns), node.source)

    zero = None if dequantized.centred.zero is None else row(dequantized.centred.zero)
    integers = in_shape(state, dequantized.centred.integers, (shape[0], columns), node.source)
    return _dequantize(state, node, Dequantized(Centred(integers, zero), row(dequantized.scale)))


def _transposed(state: Rewriter, node: Node, dequantized: Dequantized) -> int | None:
    """Scales and zero points along an axis are transposed with it."""
    rank = state.type_of(node.results[0]).rank
    parts = [dequantized.centred.integers, dequantized.scale]
    parts += [] if dequantized.centred.zero is None else [dequantized.centred.zero]
    shapes = [(1,) * (rank - state.type_of(part).rank) + state.shape_of(part) for part in parts]
    integers, scale, *zero = (
        state.emit(
            "transpose",
            (in_shape(state, part, shape, node.source),),
            dict(node.attributes),
            node.source,
        )
        for part, shape in zip(parts, shapes, strict=True)
    )
    return _dequantize(
        state, node, Dequantized(Centred(integers, zero[0] if zero else None), scale)
    )


def _dequantize(state: Rewriter, node: Node, dequantized: Dequantized) -> int:
    """The floats again, as the frontend writes them."""
    integers, zero, scale = (
        dequantized.centred.integers,
        dequantized.centred.zero,
        dequantized.scale,
    )
    if is_single(state, scale) and is_single(state, zero):
        scale = in_shape(state, scale, (), node.source)
        zero = None if zero is None else in_shape(state, zero, (), node.source)
    wide = state.emit("cast", (integers,), {"dtype": "f32"}, node.source)
    if zero is not None:
        wide = state.emit("sub", (wide, zero), {}, node.source)
    return state.emit("mul", (wide, scale), {}, node.source)


def _concat(state: Rewriter, node: Node) -> int | None:
    """Join the integers of operands that have one scale and zero point."""
    found = [dequantized(state, operand) for operand in node.operands]
    first = found[0]
    if first is None or not all(part and _same(state, first, part) for part in found):
        return None
    integers = [part.centred.integers for part in found if part]
    moved = state.emit("concat", integers, dict(node.attributes), node.source)
    return _dequantize(state, node, replace(first, centred=_of(first.centred, moved)))


def _same(state: Rewriter, one: Dequantized, two: Dequantized) -> bool:
    """Whether two tensors have the same integers for the same numbers."""
    types = {state.type_of(part.centred.integers).dtype for part in (one, two)}
    return (
        len(types) == 1
        and _equal(state, one.scale, two.scale)
        and _equal(state, one.centred.zero, two.centred.zero)
        and is_single(state, one.scale)
        and is_single(state, one.centred.zero)
    )


def _equal(state: Rewriter, one: int | None, two: int | None) -> bool:
    """Whether two parameters are one value or one known number."""
    if one == two:
        return True
    if one is None or two is None:
        return False
    found = number(state, one)
    return found is not None and found == number(state, two)


def _quantized_again(state: Rewriter, node: Node) -> int | None:
    """Integers whose numbers are quantized by their own scale; or quantized before they are moved
    or joined."""
    found = quantized(state, node)
    quotient = state.made_by(found.quotient, "div") if found else None
    if found is None or quotient is None:
        return None
    x, scale = quotient.operands
    own = dequantized(state, x)
    if own is None:
        return _quantized_apart(state, node, x) or _quantized_before(state, node, x)
    same_type = state.type_of(own.centred.integers).dtype == node.text("dtype")
    same_scale = is_positive(state, scale) and _equal(state, own.scale, scale)
    if not (same_type and same_scale and _equal(state, own.centred.zero, found.zero)):
        return None
    return own.centred.integers


def _quantized_apart(state: Rewriter, node: Node, value: int) -> int | None:
    """Quantize each operand of a concatenation of dequantized values, then join them."""
    joined = state.made_by(value, "concat")
    if joined is None or not all(dequantized(state, operand) for operand in joined.operands):
        return None
    chain = _single_chain(state, node, value)
    if chain is None:
        return None
    parts = [_again(state, chain, value, operand) for operand in joined.operands]
    return state.emit("concat", parts, dict(joined.attributes), node.source)


def _quantized_before(state: Rewriter, node: Node, value: int) -> int | None:
    """Quantize before a reshape or transpose of a value that nothing else reads, so that nothing
    stands between arithmetic and its quantization, and bytes are moved."""
    moved = state.made_by(value, "reshape", "transpose")
    if moved is None or not state.is_used_once(value) or state.is_constant(value):
        return None
    chain = _single_chain(state, node, value)
    if chain is None:
        return None
    integers = _again(state, chain, value, moved.operands[0])
    return state.emit(moved.op, (integers,), dict(moved.attributes), node.source)


def _single_chain(state: Rewriter, node: Node, value: int) -> list[Node] | None:
    """The ops from ``value`` to ``node``, in order; None where a parameter is not one number."""
    chain = [node]
    while chain[-1].operands[0] != value:
        inner = state.producer(chain[-1].operands[0])
        assert inner is not None
        chain.append(inner)
    single = all(is_single(state, other) for part in chain for other in part.operands[1:])
    return chain[::-1] if single else None


def _again(state: Rewriter, chain: Sequence[Node], old: int, new: int) -> int:
    """Emit the ops of a chain again, for another operand; return the result of the last one."""
    for part in chain:
        assert part.operands[0] == old
        old = part.results[0]
        operands = (new, *part.operands[1:])
        new = state.emit(part.op, operands, dict(part.attributes), part.source)
    return new
