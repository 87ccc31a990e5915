"""What rounding decides in a graph: which values have the same bits on every machine, and how far
the others move when every kernel errs.

In: a graph, inputs. Out: a set of values; the results of runs in which each inexact float is moved
by what a right kernel may be off. Not done here: how far is too far (``deviation``, ``selftest``).

A step that an integer takes because a float was moved (QuantizeLinear at a tie, a comparison, an
index) is followed through the rest of the graph, as it is on a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ingot_build_rules.tools.check.generated_inputs import splitmix
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.ir.op import Array, bf16_to_f32
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES, f32_to_bf16
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, HALVES, DType, TensorType
from ingot_compiler.lowering.groups.narrow_values import is_closed
from ingot_compiler.oracles.interpret import Settle, interpret_values
from ingot_runtime.lazy_dataclass import dataclass

# What a right kernel may be off by, by the largest magnitude that it stores: a few roundings of
# f16 and bf16; of f32 and f64 more, for sums are made in another order and functions are series.
ERRORS: dict[DType, float] = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
_PRODUCTS = ("matmul", "conv")
_EXACT = Trait.EXACT | Trait.MOVEMENT | Trait.INDEXED | Trait.SOURCE | Trait.CODES
DIRECTIONS = (1.0, -1.0)
"""The directions of two runs: what is near to a step from below takes it in one of them, from above
in the other."""


def exact_values(graph: Graph, *, joined: bool = False) -> frozenset[int]:
    """The values that have the same bits wherever they are computed: of integers, or of floats by
    operations that round once, unless passes may have ``joined`` these."""
    found = set(graph.inputs)
    for node in graph.nodes:
        read = {*node.operands, *captured(node)}
        if found.issuperset(read) and _is_exact(graph, node, joined=joined):
            found.update(node.results)
    return frozenset(found)


def _is_exact(graph: Graph, node: Node, *, joined: bool) -> bool:
    """Whether the op adds no rounding that another kernel makes otherwise."""
    if node.regions:
        return not any(
            tensor_type.dtype in FLOATS for region in node.regions for tensor_type in region.types
        )
    named = (*node.operands, *node.results)
    if not any(graph.types[value].dtype in FLOATS for value in named):
        return True
    traits = OPS_BY_NAME[node.op].traits
    # Between the ops that one node of a file became, and inside sums, kernels round no half.
    halves = any(graph.types[value].dtype in HALVES for value in node.results)
    if halves and not traits & (_EXACT & ~Trait.EXACT) and not is_closed(node.op):
        return False
    if joined and Trait.ELEMENTWISE in traits:
        return False
    sums = node.table.get("reduction", "none") != "none"
    return bool(traits & _EXACT) and not sums


@dataclass(frozen=True, slots=True)
class Errors:
    """What moves floats: the results of inexact ops, and of all others by an own rounding or two
    where passes may have joined them (``joined``). ``rounded``: factors of products are rounded to
    bf16."""

    graph: Graph
    direction: float
    joined: bool = False
    rounded: bool = False

    def settle(
        self, index: int, results: tuple[Array, ...], _: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The results of node ``index``, moved."""
        node = self.graph.nodes[index]
        if _is_exact(self.graph, node, joined=self.joined):
            return results
        return tuple(
            self._moved(node, self.graph.types[value], array)
            for value, array in zip(node.results, results, strict=True)
        )

    def _moved(self, node: Node, tensor_type: TensorType, array: Array) -> Array:
        if tensor_type.dtype not in FLOATS or array.size == 0:
            return array
        numbers = numbers_of(array, tensor_type.dtype)
        size = np.abs(numbers)
        if _is_exact(self.graph, node, joined=False):
            error = size * (ERRORS[tensor_type.dtype] / 16)
        else:
            is_rough = self.rounded and node.op in _PRODUCTS
            largest = np.max(size, where=np.isfinite(numbers), initial=0.0, keepdims=True)
            error = largest * ERRORS["bf16" if is_rough else tensor_type.dtype]
        bits = splitmix(node.results[0], array.size).reshape(array.shape) >> np.uint64(63)
        with np.errstate(invalid="ignore"):
            moved = numbers + np.where(bits, self.direction, -self.direction) * error
        # None of another sign: roots and logarithms are asked of what is never below 0.
        moved = np.where(np.signbit(moved) == np.signbit(numbers), moved, 0.0)
        return array_of(np.where(np.isfinite(numbers), moved, numbers), tensor_type.dtype)


def moved_outputs(
    graph: Graph, given: Sequence[Array], read: ConstantReader, errors: Errors
) -> tuple[Array, ...]:
    """The outputs of a run in which every kernel errs."""
    return settled_outputs(graph, given, read, errors.settle)


def settled_outputs(
    graph: Graph, given: Sequence[Array], read: ConstantReader, settle: Settle
) -> tuple[Array, ...]:
    """The outputs of a run whose results go through ``settle``."""
    found = {
        value: array
        for value, array in zip(graph.inputs, given, strict=True)
        if value in graph.outputs
    }

    def keep(
        index: int, results: tuple[Array, ...], bindings: Mapping[str, int]
    ) -> tuple[Array, ...]:
        settled = settle(index, results, bindings)
        pairs = zip(graph.nodes[index].results, settled, strict=True)
        found.update(pair for pair in pairs if pair[0] in graph.outputs)
        return settled

    with np.errstate(all="ignore"):
        for _ in interpret_values(graph, given, read, keep):
            pass
    return tuple(found[output] for output in graph.outputs)


def numbers_of(array: Array, dtype: DType) -> Array:
    """Floats as float64."""
    wide = bf16_to_f32(array.view(np.uint16)) if dtype == "bf16" else array
    return wide.astype(np.float64)


def array_of(numbers: Array, dtype: DType) -> Array:
    """Float64 as the graph stores floats."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "bf16":
            return f32_to_bf16(numbers.astype(np.float32))
        return np.asarray(numbers.astype(STORAGE_DTYPES[dtype]))
