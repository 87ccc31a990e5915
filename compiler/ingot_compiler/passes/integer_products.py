"""Pass: products of quantised values are products of their 8-bit integers.

In: a graph as the frontend wrote it: a later pass would hide what it is looked for by. Out: a graph
where ``matmul`` of two dequantised operands is ``matmul_integer`` times both scales, and where a
product of integers less their zero points takes the integers as they are stored. Not done here: the
sums that stand for zero points (``zero_points``).

``sum (a - p) s (b - q) t = s t sum (a - p)(b - q)`` holds where scales and zero points do not
change along the summed axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.quantised_values import Centred, centred, dequantised
from ingot_compiler.passes.rewrite import Rewriter, rewrite
from ingot_compiler.passes.zero_points import Sums, integer_matmul

_BYTES = ("i8", "u8")


def integer_products(graph: Graph) -> Graph:
    """Let products read the integers beneath their operands."""
    return rewrite(graph, rule)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a product of quantised operands."""
    if node.op == "matmul_integer":
        found = _of_integers(state, node)
    elif node.op == "matmul":
        found = _of_dequantised(state, node)
    else:
        found = None
    return None if found is None else (found,)


def _of_integers(state: Rewriter, node: Node) -> int | None:
    """Of MatMulInteger: its operands are differences in i16."""
    a, b = (centred(state, operand) for operand in node.operands)
    if a is None or b is None or not _fit(state, a, b):
        return None
    return integer_matmul(Sums(state, node.source), a, b)


def _of_dequantised(state: Rewriter, node: Node) -> int | None:
    a, b = (dequantised(state, operand) for operand in node.operands)
    if a is None or b is None or not _fit(state, a.centred, b.centred):
        return None
    if not (_is_along_rows(state, a.scale) and _is_along_columns(state, b.scale)):
        state.refuse(node, "a scale changes along the axis that is summed")
        return None
    sums = Sums(state, node.source)
    total = sums.cast(integer_matmul(sums, a.centred, b.centred), "f32")
    return sums.add("mul", total, sums.add("mul", a.scale, b.scale))


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
