"""Which products of a quantised model run in floats, and why.

In: a graph behind the passes over integers. Out: a ``Refusal`` for each product of floats, none
where nothing is quantised. Not done here: the passes (``integer_products``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.refusal import INTEGER_PRODUCT, Refusal
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.quantised_values import Dequantised, dequantised
from ingot_compiler.passes.rewrite import Rewriter

_PRODUCTS = ("matmul", "conv")
_OTHERS = ("conv_transpose", "recurrent")
_ORDINALS = ("first", "second")


def products_in_floats(graph: Graph) -> tuple[Refusal, ...]:
    """One for each product that is not one of integers."""
    state = Rewriter(graph)
    is_quantised, found = False, list[Refusal]()
    for node in graph.nodes:
        state.mark = node.mark
        is_quantised |= _is_of_integers(state, node) or _is_dequantised(state, node)
        found += _refused(state, node)
    return tuple(dict.fromkeys(found)) if is_quantised else ()


def _is_of_integers(state: Rewriter, node: Node) -> bool:
    dtypes = [state.type_of(operand).dtype for operand in node.operands[:2]]
    if node.op == "recurrent":
        return node.flag("is_quantised")
    return node.op == "matmul_integer" or (node.op == "conv" and dtypes[0] in BYTES)


def _is_dequantised(state: Rewriter, node: Node) -> bool:
    return node.op == "mul" and dequantised(state, node.results[0]) is not None


def _refused(state: Rewriter, node: Node) -> Iterator[Refusal]:
    if node.op in _OTHERS and not _is_of_integers(state, node):
        yield Refusal(INTEGER_PRODUCT, node.source, "it has no kernel for integers")
    elif node.op in _PRODUCTS and state.type_of(node.results[0]).dtype in FLOATS:
        operands = [dequantised(state, operand) for operand in node.operands[:2]]
        yield Refusal(INTEGER_PRODUCT, node.source, _reason(state, operands))


def _reason(state: Rewriter, operands: list[Dequantised | None]) -> str:
    missing = [name for name, operand in zip(_ORDINALS, operands, strict=True) if operand is None]
    if len(missing) == len(operands):
        return "no operand is quantised"
    if missing:
        return f"its {missing[0]} operand is not quantised"
    dtypes = [state.type_of(item.centred.integers).dtype for item in operands if item]
    wide = [dtype for dtype in dtypes if dtype not in BYTES]
    if wide:
        return f"its integers are {wide[0]}, not 8-bit"
    return "a scale or zero point changes along the axis that is summed"
