"""How much work an op is, whatever device does it: operations, bytes, launches.

In: a node, the types of its graph. Out: ``Work``. Not done here: how long that takes
(``device_costs``), what fusion really does: an elementwise op is taken to join the kernel that
computes its first operand, padding and each operand of a concatenation to be a launch more. Open
sizes count as 64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass

_STORED = frozenset(("average_pool", "concat", "copy", "max_pool"))
"""An elementwise op behind one of them is a launch of its own."""
VIEWS = frozenset(("broadcast_to", "reshape", "slice", "transpose"))
"""Mostly another way to read the same bytes."""
_SCORE_FLOPS = 5
_PASS_ROWS, _PASSES_MAX = 6, 8
"""The weights pass by once for so many rows of the result, and at most so often; measured."""
_DENSE_CHANNELS_MIN = 3
"""A convolution with fewer input channels per group has no products to speak of."""
_FUNCTION_FLOPS: Mapping[str, int] = {"cos": 100, "pow": 180, "sin": 100, "tan": 100}
"""Operations per element of functions that take far longer than an addition; measured."""


@dataclass(frozen=True, slots=True)
class Work:
    """``contraction_flops``: multiply-adds count as two; ``flops``: all other operations;
    ``constant_bytes``: of weights, ``passed_bytes``: the same as often as an op reads them;
    ``size_bytes``: all other bytes."""

    contraction_flops: int = 0
    flops: int = 0
    size_bytes: int = 0
    constant_bytes: int = 0
    passed_bytes: int = 0
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
            self.constant_bytes + other.constant_bytes,
            self.passed_bytes + other.passed_bytes,
            self.launch_count + other.launch_count,
        )


@dataclass(frozen=True, slots=True)
class Setting:
    """What the work of a node depends on beside the node: its graph, with the node that makes each
    value; ``constants``, values made from constants alone: they cost nothing in a call, and are
    made on every device that reads them; ``computed``: values of kernels that an elementwise op can
    join; ``transposed``: views that have no rows."""

    graph: Graph
    makers: Mapping[int, Node]
    constants: frozenset[int]
    computed: frozenset[int]
    transposed: frozenset[int]


def setting_of(graph: Graph, seen: Mapping[int, Node] | None = None) -> Setting:
    """The setting of all nodes of a graph; ``seen``: the constants around it that it reads, with
    the nodes that make them. A copy changes nothing: the work of a node is the same before and
    after copies are written."""
    constants, computed, transposed = set[int](seen or ()), set[int](), set[int]()
    for node in graph.nodes:
        if not node.regions and node.op != "read_dim" and constants.issuperset(node.operands):
            constants.update(node.results)
        elif _computes(node) or (node.op == "copy" and computed.issuperset(node.operands)):
            computed.update(node.results)
        elif node.op == "transpose" or (node.op == "copy" and node.operands[0] in transposed):
            transposed.update(node.results)
    makers = graph.makers()
    makers |= seen or {}
    return Setting(graph, makers, *map(frozenset, (constants, computed, transposed)))


def settings_inside(node: Node, around: Setting) -> list[Setting]:
    """The settings of the regions of a node, which read constants around them."""
    if not node.regions:
        return []
    seen = {value: around.makers[value] for value in captured(node) & around.constants}
    return [setting_of(region, seen) for region in node.regions]


def _computes(node: Node) -> bool:
    moves = Trait.MOVEMENT in OPS_BY_NAME[node.op].traits
    return not (moves or node.regions or node.op in _STORED)


def work_of(node: Node, setting: Setting) -> Work:
    """The work of one node, with all that is in its branches and bodies, each counted once."""
    if setting.constants.issuperset(node.results) or _is_view(node, setting):
        return Work()
    regions = settings_inside(node, setting)
    inside = [work_of(inner, region) for region in regions for inner in region.graph.nodes]
    return sum(inside, _own_work(node, setting))


def _is_view(node: Node, setting: Setting) -> bool:
    """Whether it is another way to read the same bytes; a reshape of what is transposed is not."""
    if node.op == "reshape":
        return node.operands[0] not in setting.transposed
    return node.op in VIEWS or node.op == "copy"


def bytes_of(tensor: TensorType) -> int:
    """Bytes of a tensor."""
    return typical(tensor.size_bytes)


def _own_work(node: Node, setting: Setting) -> Work:
    types = setting.graph.types
    operands, results = ([types[value] for value in ids] for ids in (node.operands, node.results))
    if node.regions or not results:
        return Work()
    if Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits:
        return _elementwise(node, setting)
    constants = [value in setting.constants for value in node.operands]
    sizes = [bytes_of(operand) for operand in operands]
    constant_bytes = sum(size for size, one in zip(sizes, constants, strict=True) if one)
    size_bytes = sum(sizes) - constant_bytes + sum(map(bytes_of, results))
    launch_count = len(operands) if node.op == "concat" else 1
    if node.op not in _CONTRACTIONS:
        flops = _other_flops(node, operands, results)
        return Work(0, flops, size_bytes, constant_bytes, constant_bytes, launch_count)
    flops = _CONTRACTIONS[node.op](node, operands, results[0])
    passed_bytes = round(constant_bytes * _passes(node, results[0]))
    if _is_padded(node):
        launch_count += 1  # the halo around the image is filled beforehand
    if _is_dense(node, operands):
        return Work(flops, 0, size_bytes, constant_bytes, passed_bytes, launch_count)
    return Work(0, flops, size_bytes, constant_bytes, passed_bytes, launch_count)


def _elementwise(node: Node, setting: Setting) -> Work:
    """Its first operand is in registers where a kernel computes it."""
    types = setting.graph.types
    read = [value for value in node.operands if value not in setting.constants]
    is_joined = bool(read) and read[0] in setting.computed
    stored = [types[value] for value in (read[1:] if is_joined else (*read, *node.results))]
    flops = _FUNCTION_FLOPS.get(node.op, 1) * _count(types[node.results[0]])
    return Work(0, flops, sum(map(bytes_of, stored)), launch_count=int(not is_joined))


def _passes(node: Node, result: TensorType) -> float:
    """How often an op reads its weights."""
    columns = result.shape[1] if node.op.startswith("conv") else result.shape[-1]
    rows = _count(result) / max(1, typical(columns))
    return min(max(1.0, rows / _PASS_ROWS), _PASSES_MAX)


def _is_padded(node: Node) -> bool:
    return node.op == "conv" and any(
        pad != 0 for name in ("pads_before", "pads_after") for pad in node.dims(name)
    )


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
    "grouped_matmul": _matmul,
    "grouped_matmul_blocks": _matmul,
    "matmul": _matmul,
    "matmul_blocks": _matmul,
    "matmul_integer": _matmul,
    "recurrent": _recurrent,
}
