"""Constant expressions: what a graph computes from weights alone, cut out and evaluated with the
same bytes everywhere.

In: a graph; for evaluation a reader of constants. Out: the values that can be folded, each one's
expression, its bytes.
Not done here: packing for kernels, storage of the result (a rule), exp, log, matmul and all else
whose last bit depends on the machine.

Floats are f32 or f64 through + - * / sqrt, each correctly rounded, in the order of the nodes. Which
NaN an operation gives differs between processors: every NaN that arithmetic makes is written as the
quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000). ``min`` and ``max`` propagate NaN and order -0
before +0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Sum
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.lowering.constant_arithmetic import ARITHMETIC, cast, may_cast
from ingot_compiler.lowering.constant_movement import MOVEMENT, dense

GROWTH_MAX = 4  # a folded value may take this many times the bytes of the constants it reads
GROWTH_FREE_BYTES = 1 << 20  # and this much more
GROWTH_TOTAL_FREE_BYTES = (
    1 << 26
)  # all folded values together may be so much larger than what they read, and as much as all constants
EXPRESSION_NODES_MAX = 1024  # of one value, each as often as it is read: every value that kernels read has an expression of its own
_ARITHMETIC_DTYPES = frozenset(("f32", "f64"))


def constant_values(graph: Graph) -> frozenset[int]:
    """Values computed from constants and literals alone by ops that can be folded; sources
    themselves included.

    A value larger than four times the constants it reads and 1 MiB is left to run time, and so is
    all that needs it; so are values with long expressions, and those that together would make a
    large bundle of a small model.
    """
    leaves: dict[int, frozenset[int]] = {}
    node_counts: dict[int, int] = {}
    growth_bytes = 0
    weights_bytes = sum(
        _size_bytes(graph.types[node.results[0]]) for node in graph.nodes if node.op == "constant"
    )
    for node in graph.nodes:
        if any(operand not in leaves for operand in node.operands) or not _is_foldable(graph, node):
            continue
        read = frozenset(leaf for operand in node.operands for leaf in leaves[operand])
        (result,) = node.results
        if node.op == "constant":
            read = frozenset((result,))
        read_bytes, size_bytes = (
            sum(_size_bytes(graph.types[leaf]) for leaf in read),
            _size_bytes(graph.types[result]),
        )
        node_count = 1 + sum(node_counts[operand] for operand in node.operands)
        growth_bytes_after = growth_bytes + max(size_bytes - read_bytes, 0)
        if (
            size_bytes <= GROWTH_MAX * read_bytes + GROWTH_FREE_BYTES
            and growth_bytes_after <= GROWTH_TOTAL_FREE_BYTES + weights_bytes
            and node_count <= EXPRESSION_NODES_MAX
        ):
            leaves[result], node_counts[result], growth_bytes = read, node_count, growth_bytes_after
    return frozenset(leaves)


def _size_bytes(tensor: TensorType) -> int:
    size_bytes = tensor.size_bytes
    assert isinstance(size_bytes, int)
    return size_bytes


def _is_foldable(graph: Graph, node: Node) -> bool:
    if (
        node.regions
        or len(node.results) != 1
        or _is_symbolic(tuple(value for _, value in node.attributes))
    ):
        return False
    result, operands = (
        graph.types[node.results[0]],
        [graph.types[operand] for operand in node.operands],
    )
    if not all(isinstance(dim, int) for dim in result.shape):
        return False
    if Trait.SOURCE in OPS_BY_NAME[node.op].traits or node.op in MOVEMENT:
        return True
    if node.op == "cast":
        return may_cast(operands[0].dtype, result.dtype)
    if node.op not in ARITHMETIC or result.dtype == "bool":
        return False
    return result.dtype in _ARITHMETIC_DTYPES or (
        result.dtype not in FLOATS and Trait.DIVIDES not in OPS_BY_NAME[node.op].traits
    )


def _is_symbolic(value: Attribute) -> bool:
    return any(map(_is_symbolic, value)) if isinstance(value, tuple) else isinstance(value, Sum)


def extract(graph: Graph, value: int) -> Graph:
    """The graph without inputs that computes ``value``, numbered by depth first search, without
    sources and marks.

    Equal expressions, wherever they stand and on whatever device, give equal graphs: copies between
    devices are left out.
    """
    producers = graph.producers()

    def made(value: int) -> int:
        while (node := graph.nodes[producers[value]]).op == "copy":
            (value,) = node.operands
        return value

    value = made(value)
    renamed: dict[int, int] = {}
    nodes: list[Node] = []
    types: list[TensorType] = []
    waiting = [value]
    while waiting:
        top = waiting[-1]
        node = graph.nodes[producers[top]]
        node = replace(node, operands=tuple(map(made, node.operands)))
        missing = [operand for operand in node.operands if operand not in renamed]
        if top in renamed or not missing:
            waiting.pop()
            if top not in renamed:
                renamed[top] = len(types)
                types.append(graph.types[top])
                operands = tuple(renamed[operand] for operand in node.operands)
                nodes.append(
                    replace(node, operands=operands, results=(renamed[top],), source=(), mark="")
                )
        else:
            waiting += reversed(missing)
    return Graph((), tuple(nodes), (renamed[value],), tuple(types))


def evaluate(expression: Graph, read: ConstantReader) -> memoryview:
    """The value's bytes, dense, row-major and little-endian: the same on every machine.

    Extra memory: the operands that an op needs at once; views and buffers that nobody reads again
    are reused.
    """
    last_use = {
        operand: index for index, node in enumerate(expression.nodes) for operand in node.operands
    }
    last_use |= dict.fromkeys(expression.outputs, len(expression.nodes))
    values: dict[int, Array] = {}
    owned: set[int] = set()  # results of arithmetic that nothing else refers to: may be overwritten
    for index, node in enumerate(expression.nodes):
        (result,) = node.results
        operands = [values[operand] for operand in node.operands]
        spent = {operand for operand in node.operands if last_use[operand] == index}
        free = [values[operand] for operand in node.operands if operand in spent & owned]
        values[result] = _evaluate_node(expression, node, operands, free, read)
        if node.op in ARITHMETIC or node.op == "cast":
            owned.add(result)
        elif node.op in MOVEMENT:
            # A view refers to its operand, which must not be overwritten then; the copying ops lose
            # a reuse by this.
            owned.difference_update(node.operands)
        for operand in spent:
            del values[operand]
    (output,) = expression.outputs
    return dense(values[output]).reshape(-1).view(np.uint8).data.toreadonly()


def _evaluate_node(
    expression: Graph,
    node: Node,
    operands: Sequence[Array],
    free: Sequence[Array],
    read: ConstantReader,
) -> Array:
    tensor = expression.types[node.results[0]]
    shape = tuple(dim for dim in tensor.shape if isinstance(dim, int))
    attributes: Mapping[str, Attribute] = dict(node.attributes)
    if node.op == "constant":
        return np.frombuffer(
            read(node.text("weight")), STORAGE_DTYPES[tensor.dtype].newbyteorder("<")
        ).reshape(shape)
    if Trait.SOURCE in OPS_BY_NAME[node.op].traits:
        return _source(node, tensor, shape)
    if node.op in MOVEMENT:
        return MOVEMENT[node.op](operands, attributes, shape)
    if node.op == "cast":
        return cast(operands[0], expression.types[node.operands[0]].dtype, tensor.dtype)
    return ARITHMETIC[node.op](operands, _output(shape, STORAGE_DTYPES[tensor.dtype], free))


def _output(shape: tuple[int, ...], dtype: np.dtype[np.generic], free: Sequence[Array]) -> Array:
    """A buffer for a result: one that is not needed any more, or a new one."""
    for array in free:
        if (
            array.shape == shape
            and array.dtype == dtype
            and array.flags.writeable
            and array.flags.c_contiguous
        ):
            return array
    return np.empty(shape, dtype)


def _source(node: Node, tensor: TensorType, shape: tuple[int, ...]) -> Array:
    if node.op == "iota":
        return np.arange(shape[0]).astype(STORAGE_DTYPES[tensor.dtype])
    if node.op == "dim_values":
        return np.array(node.ints("values"), np.int64)
    numbers = np.array(
        node.numbers("value"),
        np.float64 if tensor.dtype == "bf16" else STORAGE_DTYPES[tensor.dtype],
    )
    return (
        cast(numbers.reshape(shape), "f64", "bf16")
        if tensor.dtype == "bf16"
        else numbers.reshape(shape)
    )
