"""How much work an op is, whatever device does it: operations, bytes, launches.

In: a node, the types of its graph. Out: ``Work``. Not done here: how long that takes
(``device_costs``), what fusion really does: an elementwise op is taken to join the kernel that
makes its first operand. Open sizes count as 64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typical import typical

VIEWS = frozenset(("broadcast_to", "reshape", "slice", "transpose"))
"""Mostly another way to read the same bytes."""
_SCORE_FLOPS = 5
_DENSE_CHANNELS_MIN = 4
"""A convolution with fewer input channels per group has no products to speak of."""


@dataclass(frozen=True, slots=True)
class Work:
    """``contraction_flops``: multiply-adds count as two; ``flops``: all other operations."""

    contraction_flops: int = 0
    flops: int = 0
    size_bytes: int = 0
    launch_count: int = 0

    @property
    def all_flops(self) -> int:
        """Operations of both kinds."""
        return self.contraction_flops + self.flops

    def __add__(self, other: Work) -> Work:
        return Work(
            self.contraction_flops + other.contraction_flops,
            self.flops + other.flops,
            self.size_bytes + other.size_bytes,
            self.launch_count + other.launch_count,
        )


def constants_of(graph: Graph) -> frozenset[int]:
    """Values made from constants alone: they cost nothing in a call, and are made on every device
    that reads them."""
    made: set[int] = set()
    for node in graph.nodes:
        if not node.regions and node.op != "read_dim" and made.issuperset(node.operands):
            made.update(node.results)
    return frozenset(made)


def work_of(node: Node, graph: Graph, constants: frozenset[int]) -> Work:
    """The work of one node, with all that is in its branches and bodies, each counted once."""
    if constants.issuperset(node.results) or node.op in VIEWS or node.op == "copy":
        return Work()
    inside = [
        work_of(inner, region, constants_of(region))
        for region in node.regions
        for inner in region.nodes
    ]
    return sum(inside, _own_work(node, graph.types, constants))


def bytes_of(tensor: TensorType) -> int:
    """Bytes of a tensor."""
    return typical(tensor.size_bytes)


def _own_work(node: Node, types: Sequence[TensorType], constants: frozenset[int]) -> Work:
    operands, results = ([types[value] for value in ids] for ids in (node.operands, node.results))
    if node.regions or not results:
        return Work()
    if Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits:
        return _joined(node, types, constants)
    size_bytes = sum(map(bytes_of, (*operands, *results)))
    if node.op in _CONTRACTIONS:
        flops = _CONTRACTIONS[node.op](node, operands, results[0])
        if _is_dense(node, operands):
            return Work(flops, 0, size_bytes, 1)
        return Work(0, flops, size_bytes, 1)
    return Work(0, _other_flops(node, operands, results), size_bytes, 1)


def _joined(node: Node, types: Sequence[TensorType], constants: frozenset[int]) -> Work:
    """An elementwise op behind another one has its first operand in registers."""
    read = [value for value in node.operands if value not in constants]
    more_bytes = sum(bytes_of(types[value]) for value in read[1:])
    return Work(0, _count(types[node.results[0]]), more_bytes, 0)


def _is_dense(node: Node, operands: Sequence[TensorType]) -> bool:
    return node.op != "conv" or typical(operands[1].shape[1]) >= _DENSE_CHANNELS_MIN


def _other_flops(node: Node, operands: Sequence[TensorType], results: Sequence[TensorType]) -> int:
    if Trait.MOVEMENT in OPS_BY_NAME[node.op].traits:
        return 0
    if node.op in ("average_pool", "max_pool"):
        return _count(results[0]) * math.prod(node.ints("kernel"))
    return max(map(_count, (*operands, *results)))


def _count(tensor: TensorType) -> int:
    return math.prod(map(typical, tensor.shape))


def _matmul(_: Node, operands: Sequence[TensorType], result: TensorType) -> int:
    return 2 * _count(result) * typical(operands[0].shape[-1])


def _conv(_: Node, operands: Sequence[TensorType], result: TensorType) -> int:
    return 2 * _count(result) * math.prod(map(typical, operands[1].shape[1:]))


def _conv_transpose(_: Node, operands: Sequence[TensorType], __: TensorType) -> int:
    return 2 * _count(operands[0]) * math.prod(map(typical, operands[1].shape[1:]))


def _attention(_: Node, operands: Sequence[TensorType], result: TensorType) -> int:
    query, key = operands[:2]
    scores = _count(query) // max(1, typical(query.shape[-1])) * typical(key.shape[-2])
    width = typical(query.shape[-1]) + typical(result.shape[-1])
    return scores * (2 * width + _SCORE_FLOPS)


def _recurrent(_: Node, operands: Sequence[TensorType], __: TensorType) -> int:
    steps, batch = map(typical, operands[0].shape[:2])
    return 2 * steps * batch * _count(operands[1])


_CONTRACTIONS: Mapping[str, Callable[[Node, Sequence[TensorType], TensorType], int]] = {
    "attention": _attention,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "matmul": _matmul,
    "matmul_blocks": _matmul,
    "matmul_integer": _matmul,
    "recurrent": _recurrent,
}
