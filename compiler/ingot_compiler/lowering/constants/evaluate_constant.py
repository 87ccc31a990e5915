"""The bytes of a constant expression, the same everywhere.

In: an expression, a reader of constants. Out: its value's bytes. Not done here: which values are
constant (``constant_expression``), storage of the result (a rule).

Floats are f32 or f64 through + - * / sqrt, each correctly rounded, in the order of the nodes; sine,
cosine and exponential are made of these, and sums over axes in an order that is stated
(``constant_reductions``). Which
NaN an operation gives differs between processors: every NaN that arithmetic makes is written as the
quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000). ``min`` and ``max`` propagate NaN and order -0
before +0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constants.constant_arithmetic import ARITHMETIC, COMPARISONS, cast
from ingot_compiler.lowering.constants.constant_functions import FUNCTIONS
from ingot_compiler.lowering.constants.constant_movement import MOVEMENT, dense
from ingot_compiler.lowering.constants.constant_reductions import product, reduced

_ELEMENTWISE = {**ARITHMETIC, **COMPARISONS, **FUNCTIONS}


def evaluate(expression: Graph, read: ConstantReader) -> memoryview:
    """The value's bytes, dense, row-major and little-endian: the same on every machine.

    Extra memory: the operands that an op needs at once; views and buffers that nobody reads again
    are reused.
    """
    last_use = _last_uses(expression)
    values: dict[int, Array] = {}
    owned: set[int] = set()  # results of arithmetic that nothing else refers to: may be overwritten
    for index, node in enumerate(expression.nodes):
        (result,) = node.results
        operands = [values[operand] for operand in node.operands]
        spent = {operand for operand in node.operands if last_use[operand] == index}
        free = [values[operand] for operand in node.operands if operand in spent & owned]
        values[result] = _evaluate_node(expression, node, operands, free, read)
        if node.op in _ELEMENTWISE or node.op == "cast":
            owned.add(result)
        elif node.op in MOVEMENT:
            # A view refers to its operand, which must not be overwritten then; the copying ops lose
            # a reuse by this.
            owned.difference_update(node.operands)
        for operand in spent:
            del values[operand]
    (output,) = expression.outputs
    return dense(values[output]).reshape(-1).view(np.uint8).data.toreadonly()


def _last_uses(expression: Graph) -> dict[int, int]:
    """The index of the last node that reads a value; behind all nodes for outputs."""
    nodes = enumerate(expression.nodes)
    uses = {operand: index for index, node in nodes for operand in node.operands}
    return uses | dict.fromkeys(expression.outputs, len(expression.nodes))


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
        dtype = STORAGE_DTYPES[tensor.dtype].newbyteorder("<")
        return np.frombuffer(read(node.text("weight")), dtype).reshape(shape)
    if Trait.SOURCE in OPS_BY_NAME[node.op].traits:
        return _source(node, tensor, shape)
    if node.op in MOVEMENT:
        return MOVEMENT[node.op](operands, attributes, shape)
    if node.op == "cast":
        return cast(operands[0], expression.types[node.operands[0]].dtype, tensor.dtype)
    if node.op == "reduce":
        return reduced(operands[0], node.text("function"), node.ints("axes"), shape)
    if node.op == "matmul":
        left, right = operands
        return product(left, right, shape)
    return _ELEMENTWISE[node.op](operands, _output(shape, STORAGE_DTYPES[tensor.dtype], free))


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
    if tensor.dtype == "bf16":
        return cast(np.array(node.numbers("value"), np.float64).reshape(shape), "f64", "bf16")
    return np.array(node.numbers("value"), STORAGE_DTYPES[tensor.dtype]).reshape(shape)
