"""Constant expressions: the parts of a graph that depend on weights alone.

In: a graph. Out: the values that can be folded, each one's expression. Not done here: the bytes of
an expression (``evaluate_constant``), packing for kernels, functions whose last bit depends on
the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Sum, dim_mul
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, SIGNED, UNSIGNED
from ingot_compiler.lowering.constants.constant_arithmetic import ARITHMETIC, COMPARISONS
from ingot_compiler.lowering.constants.constant_functions import FUNCTIONS
from ingot_compiler.lowering.constants.constant_movement import MOVEMENT
from ingot_compiler.lowering.constants.narrow_operands import narrow_operands
from ingot_compiler.lowering.constants.widened_factors import widened_factors
from ingot_compiler.lowering.constants.written_out import written_out

GROWTH_MAX = 4  # a folded value may take this many times the bytes of the constants it reads
GROWTH_FREE_BYTES = 1 << 20  # and this much more
# All folded values together may be so much larger than what they read, and as much as all
# constants.
GROWTH_TOTAL_FREE_BYTES = 1 << 26
# Of one value: every value that kernels read has an expression of its own.
EXPRESSION_NODES_MAX = 1024  # besides literals, which hold parts of a long table
PRODUCT_WORK_MAX = 1 << 30  # multiplications of a matrix product: a second or two
_ARITHMETIC_DTYPES = frozenset(("f32", "f64"))
_COMPARED_DTYPES = _ARITHMETIC_DTYPES | SIGNED | UNSIGNED | {"bool"}


def constant_values(graph: Graph) -> frozenset[int]:
    """Values computed from constants and literals alone by ops that can be folded; sources
    themselves included.

    A value larger than four times what is stored for it and 1 MiB is left to run time, and so is
    all that needs it; so are values with long expressions, and those that together would make a
    large bundle of a small model, outputs that take less time to compute than to copy, and operands
    that kernels widen.
    """
    leaves: dict[int, frozenset[int]] = {}
    node_counts: dict[int, int] = {}
    weights = [node.results[0] for node in graph.nodes if node.op == "constant"]
    budget_bytes = GROWTH_TOTAL_FREE_BYTES + _size_bytes(graph, weights)
    grown_bytes: dict[int, int] = {}
    users, producers = cache(graph.users), cache(graph.producers)  # few graphs need them
    widened = widened_factors(graph)
    for node in graph.nodes:
        if not leaves.keys() >= {*node.operands} or not _is_foldable(graph, node):
            continue
        own = frozenset(node.results if node.op in ("constant", "literal") else ())
        read = own.union(*(leaves[operand] for operand in node.operands))
        read_bytes, size_bytes = _size_bytes(graph, read), _size_bytes(graph, node.results)
        node_count = (node.op != "literal") + sum(node_counts[operand] for operand in node.operands)
        if node_count > EXPRESSION_NODES_MAX:  # some of them perhaps counted several times
            node_count = _distinct_count(graph, producers(), node)
        growth_bytes = max(size_bytes - read_bytes, 0) * (node.results[0] not in widened)
        is_small = size_bytes <= GROWTH_MAX * read_bytes + GROWTH_FREE_BYTES
        freed_bytes = 0  # of an operand that no bundle stores
        takes_place = node.operands and (node.op == "reduce" or node.op in MOVEMENT)
        if takes_place and grown_bytes[node.operands[0]] and len(users()[node.operands[0]]) == 1:
            freed_bytes = grown_bytes[node.operands[0]]
        fits = growth_bytes <= budget_bytes + freed_bytes
        if is_small and fits and node_count <= EXPRESSION_NODES_MAX:
            (result,) = node.results
            leaves[result], node_counts[result] = read, node_count
            budget_bytes += freed_bytes - growth_bytes
            grown_bytes[result] = growth_bytes
    left = written_out(graph, leaves.keys()) | narrow_operands(graph, leaves.keys())
    return frozenset(leaves) - left


def _distinct_count(graph: Graph, producers: Mapping[int, int], node: Node) -> int:
    """How many nodes compute the result of ``node``; no more are counted than are allowed."""
    found = set(node.results)
    waiting = [node]
    while waiting and len(found) <= EXPRESSION_NODES_MAX:
        missing = set(waiting.pop().operands) - found
        found |= missing
        waiting += (graph.nodes[producers[value]] for value in missing)
    return len(found)


def _size_bytes(graph: Graph, values: Iterable[int]) -> int:
    """The bytes of some values, whose sizes are numbers."""
    total_bytes = 0
    for value in values:
        size_bytes = graph.types[value].size_bytes
        assert isinstance(size_bytes, int)
        total_bytes += size_bytes
    return total_bytes


def _is_foldable(graph: Graph, node: Node) -> bool:
    attributes = tuple(value for _, value in node.attributes)
    if node.regions or len(node.results) != 1 or _is_symbolic(attributes):
        return False
    result, traits = graph.types[node.results[0]], OPS_BY_NAME[node.op].traits
    if not all(isinstance(dim, int) for dim in result.shape):
        return False
    if Trait.SOURCE in traits or node.op in MOVEMENT or node.op == "cast":
        return True
    if node.op == "reduce":
        return _may_reduce(graph, node)
    if node.op == "matmul":
        depth, dtype = graph.types[node.operands[0]].shape[-1], result.dtype
        work = dim_mul(result.element_count, depth)
        return dtype in _ARITHMETIC_DTYPES and isinstance(work, int) and work <= PRODUCT_WORK_MAX
    if node.op in COMPARISONS:
        return graph.types[node.operands[0]].dtype in _COMPARED_DTYPES
    if node.op in FUNCTIONS:
        return result.dtype in _ARITHMETIC_DTYPES
    if node.op not in ARITHMETIC or result.dtype == "bool":
        return False
    is_integer = result.dtype not in FLOATS
    return result.dtype in _ARITHMETIC_DTYPES or (is_integer and Trait.DIVIDES not in traits)


def _may_reduce(graph: Graph, node: Node) -> bool:
    """Whether the operand has elements along all axes, and integers are not divided."""
    operand = graph.types[node.operands[0]]
    if any(operand.shape[axis] == 0 for axis in range(operand.rank)):
        return False
    if operand.dtype in FLOATS:
        return operand.dtype in _ARITHMETIC_DTYPES
    return operand.dtype != "bool" and node.text("function") != "mean"


def _is_symbolic(value: Attribute) -> bool:
    return any(map(_is_symbolic, value)) if isinstance(value, tuple) else isinstance(value, Sum)


def extract(graph: Graph, value: int, makers: Mapping[int, Node]) -> Graph:
    """The graph without inputs that computes ``value``, numbered by depth first search, without
    sources and marks. ``makers``: the node that makes each value of ``graph``.

    Equal expressions, wherever they stand and on whatever device, give equal graphs: copies between
    devices are left out.
    """
    found = _in_order(value, makers)
    renamed = {made: number for number, made in enumerate(found)}
    nodes = tuple(
        Node(
            node.op,
            tuple([renamed[operand] for operand in operands]),
            (renamed[made],),
            node.attributes,
            node.regions,
        )
        for made, (node, operands) in found.items()
    )
    return Graph((), nodes, (len(nodes) - 1,), tuple(graph.types[made] for made in found))


def _in_order(value: int, makers: Mapping[int, Node]) -> dict[int, tuple[Node, tuple[int, ...]]]:
    """What a value is computed from, each behind its operands, and the nodes that make them with
    these operands; a copy stands for its operand."""

    def original(value: int) -> int:
        while (node := makers[value]).op == "copy":
            (value,) = node.operands
        return value

    found: dict[int, tuple[Node, tuple[int, ...]]] = {}
    waiting = [original(value)]
    while waiting:
        node = makers[waiting[-1]]
        operands = tuple(map(original, node.operands))
        if missing := [operand for operand in operands if operand not in found]:
            waiting += reversed(missing)
        else:
            found.setdefault(waiting.pop(), (node, operands))
    return found
