"""Which products of a quantized model run in floats, and why.

In: a graph behind the passes over integers. Out: a ``Refusal`` for each product of floats, none
where nothing is quantized. Not done here: the passes (``integer_products``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.refusal import INTEGER_PRODUCT, Refusal
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.quantized_values import Dequantized, dequantized
from ingot_compiler.passes.rewrite import Rewriter

_PRODUCTS = ("matmul", "conv")
_OTHERS = ("conv_transpose", "recurrent")
_ORDINALS = ("first", "second")


def products_in_floats(graph: Graph) -> tuple[Refusal, ...]:
    """One for each product that is not one of integers."""
    state = Rewriter(graph)
    is_quantized, found = False, list[Refusal]()
    for node in graph.nodes:
        state.mark = node.mark
        is_quantized |= _is_of_integers(state, node) or _is_dequantized(state, node)
        found += _refused(state, node)
    return tuple(dict.fromkeys(found)) if is_quantized else ()


def _is_of_integers(state: Rewriter, node: Node) -> bool:
    dtypes = [state.type_of(operand).dtype for operand in node.operands[:2]]
    if node.op == "recurrent":
        return node.flag("is_quantized")
    return node.op == "matmul_integer" or (node.op == "conv" and dtypes[0] in BYTES)


def _is_dequantized(state: Rewriter, node: Node) -> bool:
    return node.op == "mul" and dequantized(state, node.results[0]) is not None


def _refused(state: Rewriter, node: Node) -> Iterator[Refusal]:
    if node.op in _OTHERS and not _is_of_integers(state, node):
        yield Refusal(INTEGER_PRODUCT, node.source, "it has no kernel for integers")
    elif node.op in _PRODUCTS and state.type_of(node.results[0]).dtype in FLOATS:
        operands = [dequantized(state, operand) for operand in node.operands[:2]]
        yield Refusal(INTEGER_PRODUCT, node.source, _reason(state, operands))


def _reason(state: Rewriter, operands: list[Dequantized | None]) -> str:
    missing = [name for name, operand in zip(_ORDINALS, operands, strict=True) if operand is None]
    if len(missing) == len(operands):
        return "no operand is quantized"
    if missing:
        return f"its {missing[0]} operand is not quantized"
    dtypes = [state.type_of(item.centred.integers).dtype for item in operands if item]
    wide = [dtype for dtype in dtypes if dtype not in BYTES]
    if wide:
        return f"its integers are {wide[0]}, not 8-bit"
    return "a scale or zero point changes along the axis that is summed"
