"""Pass: products of quantized values are products of their 8-bit integers.

In: a graph as the frontend wrote it: a later pass would hide what it is looked for by. Out: a graph
where ``matmul`` and ``conv`` of dequantized operands are those of integers times both scales, and
where a product of integers less their zero points takes the integers as they are stored. Not done
here: the sums that stand for zero points (``zero_points``).

``sum (a - p) s (b - q) t = s t sum (a - p)(b - q)`` holds where scales and zero points do not
change along the summed axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.quantized_values import Centred, centred, dequantized, is_single
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite, union
from ingot_compiler.passes.zero_points import Convolution, Sums, integer_conv, integer_matmul

_BYTES = ("i8", "u8")


def integer_products(graph: Graph) -> Graph:
    """Let products read the integers beneath their operands."""
    return rewrite(graph, rule, ("matmul_integer", "matmul", "conv", "cast"))


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a product of quantized operands."""
    if node.op == "matmul_integer":
        found = _of_integers(state, node)
    elif node.op == "matmul":
        found = _of_dequantized(state, node)
    elif node.op == "conv":
        found = _conv_of_dequantized(state, node)
    elif node.op == "cast":
        found = _conv_of_integers(state, node)
    else:
        found = None
    return None if found is None else (found,)


def _of_integers(state: Rewriter, node: Node) -> int | None:
    """Replace MatMulInteger, whose operands are differences in i16."""
    parts = [
        centred(state, operand) or _literal(state, operand, node.source)
        for operand in node.operands
    ]
    a, b = parts
    if a is None or b is None or not _fit(state, a, b):
        return None
    return integer_matmul(Sums(state, node.source), a, b)


def _literal(state: Rewriter, value: int, source: Sequence[int]) -> Centred | None:
    """Small weights, whose zero point the frontend has taken off: as i8, moved into its range."""
    node = state.made_by(value, "literal")
    if node is None or not node.numbers("value"):
        return None
    numbers = [int(number) for number in node.numbers("value")]
    low, high = min(numbers), max(numbers)
    moved = 0 if low >= -128 and high < 128 else low + 128
    if high - moved >= 128:
        return None
    attributes: dict[str, Attribute] = {
        "dtype": "i8",
        "shape": state.shape_of(value),
        "value": tuple(number - moved for number in numbers),
    }
    integers = state.emit("literal", (), attributes, source)
    return Centred(integers, state.literal(-moved, "i32", source) if moved else None)


def _of_dequantized(state: Rewriter, node: Node) -> int | None:
    a, b = (dequantized(state, operand) for operand in node.operands)
    if a is None or b is None or not _fit(state, a.centred, b.centred):
        return None
    if not (_is_along_rows(state, a.scale) and _is_along_columns(state, b.scale)):
        return None
    sums = Sums(state, node.source)
    total = sums.cast(integer_matmul(sums, a.centred, b.centred), "f32")
    return sums.add("mul", total, sums.add("mul", a.scale, b.scale))


def _conv_of_integers(state: Rewriter, node: Node) -> int | None:
    """Replace ConvInteger, which is an exact convolution of differences in f64, cast to i32."""
    conv = state.made_by(node.operands[0], "conv")
    if conv is None or state.type_of(node.results[0]).dtype != "i32":
        return None
    x, w = (centred(state, operand) for operand in conv.operands[:2])
    if x is None or w is None or not _fit_conv(state, x, w):
        return None
    bias = None
    if conv.operands[2:]:
        wide = state.made_by(conv.operands[2], "cast")
        if wide is None or state.type_of(wide.operands[0]).dtype != "i32":
            return None
        (bias,) = wide.operands
    sums = Sums(state, union((conv.source, node.source)))
    return integer_conv(sums, Convolution(x, w, bias, conv.table))


def _conv_of_dequantized(state: Rewriter, node: Node) -> int | None:
    x, w = (dequantized(state, operand) for operand in node.operands[:2])
    if x is None or w is None or not _fit_conv(state, x.centred, w.centred):
        return None
    if not (is_single(state, x.scale) and _is_along_outputs(state, w.scale)):
        return None
    sums = Sums(state, node.source)
    conv = Convolution(x.centred, w.centred, None, node.table)
    total = sums.cast(integer_conv(sums, conv), "f32")
    rank = state.type_of(total).rank
    scale = in_shape(state, x.scale, (), node.source)
    scale = sums.add("mul", scale, _over_positions(state, w.scale, rank, node.source))
    scaled = sums.add("mul", total, scale)
    if not node.operands[2:]:
        return scaled
    return sums.add("add", scaled, _over_positions(state, node.operands[2], rank, node.source))


def _over_positions(state: Rewriter, value: int, rank: int, source: Sequence[int]) -> int:
    """One number for each output channel, in a shape that broadcasts to the result; a single one
    as rank 0."""
    if is_single(state, value):
        return in_shape(state, value, (), source)
    return in_shape(state, value, (state.shape_of(value)[0], *(1,) * (rank - 2)), source)


def _fit_conv(state: Rewriter, x: Centred, w: Centred) -> bool:
    """Whether both are bytes, x has one zero point, and the weights one for each output."""
    if any(state.type_of(part.integers).dtype not in _BYTES for part in (x, w)):
        return False
    return is_single(state, x.zero) and (w.zero is None or _is_along_outputs(state, w.zero))


def _is_along_outputs(state: Rewriter, parameter: int) -> bool:
    """Whether a scale or zero point of [O, C, kernel..] is one for each output."""
    return all(dim == 1 for dim in state.shape_of(parameter)[1:])


def _fit(state: Rewriter, a: Centred, b: Centred) -> bool:
    """Whether both are bytes, and their zero points the same along the summed axis."""
    if any(state.type_of(part.integers).dtype not in _BYTES for part in (a, b)):
        return False
    return _is_along_rows(state, a.zero) and _is_along_columns(state, b.zero)


def _is_along_rows(state: Rewriter, parameter: int | None) -> bool:
    """Whether a scale or zero point of [.., M, K] is one for each row."""
    shape = () if parameter is None else state.shape_of(parameter)
    return not shape or shape[-1] == 1


def _is_along_columns(state: Rewriter, parameter: int | None) -> bool:
    """Whether a scale or zero point of [.., K, N] is one for each column."""
    shape = () if parameter is None else state.shape_of(parameter)
    return len(shape) < 2 or shape[-2] == 1
