"""Pass: arithmetic on literals happens now; only what is the same on every machine, and small.

In: a graph. Out: a graph where such results are literals. Not done here: ops on weights
(``constant_expression``), exp, log, sin, pow and other functions whose last bit depends on the
machine's numpy.

Integers and booleans up to 1,024 elements, and single floats in f32 and f64 by + - * / sqrt,
comparisons and exact steps (IEEE 754: one correctly rounded result).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.ir.used_symbols import attribute_symbols
from ingot_compiler.passes.rewrite import Rewriter, rewrite

ELEMENTS_MAX = 1024
_INTEGERS = Trait.EXACT | Trait.EXACT_ON_INTEGERS | Trait.MOVEMENT | Trait.INDEXED
_FOLDED_FLOATS = frozenset(("f32", "f64"))
_SHAPERS = ("reshape", "broadcast_to")
_LEAVES = ("literal", "constant")
_MAY_BE_LITERAL = frozenset(("literal", *_SHAPERS))


def fold_literals(graph: Graph) -> Graph:
    """Evaluate nodes whose operands are literals."""
    return rewrite(graph, _rule)


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if node.op in _LEAVES:
        return None
    for operand in node.operands:  # of most nodes, one ends the matter
        if not _may_be_literal(state, operand):
            return None
    if len(node.results) != 1 or not _may_fold(state, node):
        return None
    operands = [literal_array(state, operand) for operand in node.operands]
    known = [operand for operand in operands if operand is not None]
    if len(known) != len(operands) or (
        Trait.DIVIDES in OPS_BY_NAME[node.op].traits and _divides_integers_by_zero(known)
    ):
        return None
    with np.errstate(all="ignore"):
        try:
            (result,) = OPS_BY_NAME[node.op].reference(known, node.table)
        except IndexError:
            return None  # an index outside of its axis: the call is refused
    return (_emit_literal(state, np.asarray(result), state.type_of(node.results[0]), node),)


def _is_small(tensor: TensorType) -> bool:
    count = tensor.element_count
    return isinstance(count, int) and count <= ELEMENTS_MAX


def _may_fold(state: Rewriter, node: Node) -> bool:
    types = [state.type_of(value) for value in (*node.operands, *node.results)]
    if not all(map(_is_small, types)) or attribute_symbols(node.attributes):
        return False
    traits = OPS_BY_NAME[node.op].traits
    floats = [item for item in types if item.dtype in FLOATS]
    if not floats:
        return bool(traits & _INTEGERS)
    single = all(item.element_count == 1 and item.dtype in _FOLDED_FLOATS for item in floats)
    return single and Trait.EXACT in traits and (node.op != "cast" or _casts_exactly(state, node))


def _casts_exactly(state: Rewriter, node: Node) -> bool:
    """A float becomes an integer only when that integer type holds it: anything else differs
    between machines."""
    source, target = state.type_of(node.operands[0]).dtype, state.type_of(node.results[0]).dtype
    if source not in FLOATS or target in FLOATS or target == "bool":
        return True
    array = literal_array(state, node.operands[0])
    limits = np.iinfo(COMPUTE_DTYPES[target].name)
    return array is not None and all(
        limits.min <= number <= limits.max for number in array.ravel().tolist()
    )


def _may_be_literal(state: Rewriter, value: int) -> bool:
    node = state.producer(value)
    return node is not None and node.op in _MAY_BE_LITERAL


def literal_array(state: Rewriter, value: int) -> Array | None:
    """The contents of a literal, also through a reshape or broadcast to at most 1,024 elements."""
    node = state.producer(value)
    if node is None:
        return None
    tensor = state.type_of(value)
    shape = tuple(dim for dim in tensor.shape if isinstance(dim, int))
    if node.op == "literal":
        return np.array(node.numbers("value"), COMPUTE_DTYPES[tensor.dtype]).reshape(shape)
    if node.op not in _SHAPERS or not _is_small(tensor):
        return None
    inner = literal_array(state, node.operands[0])
    if inner is None:
        return None
    return inner.reshape(shape) if node.op == "reshape" else np.broadcast_to(inner, shape)


def _emit_literal(state: Rewriter, result: Array, tensor: TensorType, node: Node) -> int:
    """A literal; a single float of higher rank is a literal of rank 0 and a reshape."""
    numbers = tuple(result.ravel().tolist())
    if tensor.dtype in FLOATS and tensor.rank > 0:
        single = state.literal(numbers[0], tensor.dtype, node.source)
        return state.emit("reshape", (single,), {"shape": tensor.shape}, node.source)
    attributes = {"dtype": tensor.dtype, "shape": tensor.shape, "value": numbers}
    return state.emit("literal", (), attributes, node.source)


def _divides_integers_by_zero(operands: Sequence[Array]) -> bool:
    return operands[1].dtype.kind in "iu" and not operands[1].all()
