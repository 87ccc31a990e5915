"""Fusion: layouts and operator groups, on each device for its target.

In: a ``PlacedGraph`` and the rules of its devices. Out: the ``FusedGraph`` (stage 6). Not done
here: loops (``lower``), addresses (``plan_memory``). The order of decisions is that of the graph;
nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingot_compiler.ir.errors import LimitError, UnsupportedError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import nodes_text
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import BufferSpec, FusedGraph
from ingot_compiler.lowering.fusion.anchor import Anchor
from ingot_compiler.lowering.fusion.control import CONTROL_RULES
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf
from ingot_compiler.lowering.fusion.device_rules import DeviceRules
from ingot_compiler.lowering.fusion.flatten import FlatGraph, flatten
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import image_demands
from ingot_compiler.lowering.fusion.movement import MOVEMENT
from ingot_compiler.lowering.fusion.storage import Storage, Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.ops import ELEMENTS, INDEXED_OPERANDS
from ingot_compiler.lowering.views import dense_view, is_dense
from ingot_compiler.placement.placed import PlacedGraph


def fuse(placed: PlacedGraph, devices: Sequence[DeviceRules]) -> FusedGraph:
    """Group the operations of a graph into kernels; UnsupportedError names every op without
    lowering.

    ``devices``: the rules of each device of the table, the host's first. A kernel never holds
    operations of two devices: every crossing is a ``copy``, whose operand is stored.
    """
    flat = flatten(placed, [device.legalise for device in devices])
    graph = flat.graph
    returned = [
        value for regions in flat.regions.values() for region in regions for value in region.outputs
    ]
    devices_of_nodes = _devices_of_nodes(graph, flat.device_of)
    anchors = [
        devices[device].anchors.get(node.op)
        for node, device in zip(graph.nodes, devices_of_nodes, strict=True)
    ]
    values = FusionValues(
        graph, flat.device_of, returned, image_demands(_image_readers(graph, anchors))
    )
    fuser = Fuser(values, graph.inputs, [device.target for device in devices])
    _refuse_unknown(
        node
        for node, anchor in zip(graph.nodes, anchors, strict=True)
        if not anchor and not _is_folded(values, node)
    )
    _Walk(fuser, flat, anchors).run(0, len(graph.nodes))
    _store_outputs(fuser, graph.outputs)
    return FusedGraph(
        tuple(graph.types[value] for value in graph.inputs),
        tuple(graph.types[value] for value in graph.outputs),
        fuser.storage.buffers,
        fuser.steps,
        fuser.storage.constants,
    )


def _devices_of_nodes(graph: Graph, device_of: Sequence[int]) -> list[int]:
    """Where each node runs; nodes without results run on the host."""
    return [device_of[node.results[0]] if node.results else 0 for node in graph.nodes]


def _image_readers(graph: Graph, anchors: Sequence[Anchor | None]) -> Iterator[tuple[Node, bool]]:
    for node, anchor in zip(graph.nodes, anchors, strict=True):
        if anchor is not None and anchor.reads_image:
            yield node, anchor.reads_halo


@dataclass(frozen=True, slots=True)
class _Walk:
    """The nodes in their order; ``anchors``: of each node on its device, if it has loops of its own
    there."""

    fuser: Fuser
    flat: FlatGraph
    anchors: Sequence[Anchor | None]

    def run(self, first: int, last: int) -> None:
        """Fuse the nodes from ``first`` to ``last`` (exclusive); those of regions with the node
        that holds them."""
        index = first
        while index < last:
            node = self.flat.graph.nodes[index]
            try:
                self._visit(index, node)
            except LimitError as error:
                raise (error if error.where else error.at(nodes_text(node.source))) from None
            index = self.flat.end(index)

    def _visit(self, index: int, node: Node) -> None:
        fuser, anchor = self.fuser, self.anchors[index]
        if index in self.flat.regions:
            CONTROL_RULES[node.op](fuser, node, self.flat.regions[index], self.run)
        elif not _is_folded(fuser.values, node):
            _require(fuser, node)
            if node.op in MOVEMENT:
                MOVEMENT[node.op](fuser, node)
            elif anchor is not None:
                anchor.rule(fuser, index, node)
            elif node.op != "constant":
                _defer_elements(fuser, index, node)


def _require(fuser: Fuser, node: Node) -> None:
    """What must hold of sizes before the node's kernel runs."""
    fuser.require(fuser.requirements.of_sizes(node))
    if node.op in ELEMENTS or node.op == "broadcast_to":
        fuser.require(fuser.requirements.of_counts(node))
    fuser.require(fuser.requirements.of_shape_constraints(node))


def _is_folded(values: FusionValues, node: Node) -> bool:
    scalar = node.op == "literal" and values.type_of(node.results[0]).rank == 0
    return (
        not scalar
        and bool(node.results)
        and all(values.is_constant(result) for result in node.results)
    )


def _refuse_unknown(nodes: Iterable[Node]) -> None:
    unknown = sorted(
        {node.op for node in nodes} - {"constant", *ELEMENTS, *MOVEMENT, *CONTROL_RULES}
    )
    if unknown:
        raise UnsupportedError(
            f"no lowering for {', '.join(unknown)}",
            why="a device that they are placed on has no kernel for them yet",
            do="report the model",
        )


def _defer_elements(fuser: Fuser, index: int, node: Node) -> None:
    """An elementwise node takes its single-use operands into its own kernel, at most one of them
    with loops."""
    shape = fuser.values.type_of(node.results[0]).shape
    parts: list[Deferred] = []
    anchored: int | None = None
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            part = fuser.absorb(
                operand, shape, anchor_allowed=fuser.values.type_of(operand).shape == shape
            )
        if part is not None and part.anchored:
            if anchored is not None and anchored != operand:
                # Two anchors: the earlier one becomes an operand.
                fuser.store_because(anchored, "its user takes in another operand's loops")
            anchored = operand
    leaves: list[Leaf] = []
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            part = fuser.absorb(operand, shape, anchor_allowed=operand == anchored)
        if part is None:
            leaves.append(fuser.leaf(operand))
        else:
            parts.append(part)
    fuser.defer(index, parts, leaves)


def _store_outputs(fuser: Fuser, outputs: Sequence[int]) -> None:
    """Every graph output in its own dense buffer: the workspace buffer it fills becomes it, or it
    is copied."""
    taken: set[int] = set()
    for position, value in enumerate(outputs):
        stored, kind = fuser.where(value), fuser.values.type_of(value)
        if stored.buffer not in taken and _may_become_output(fuser.storage, stored, kind):
            fuser.storage.become_output(stored.buffer, position)
        else:
            spec = BufferSpec("output", kind.dtype, kind.element_count, position)
            stored = Stored(fuser.storage.add(spec), dense_view(kind.shape))
            fuser.copy(value, stored)
        taken.add(stored.buffer)


def _may_become_output(storage: Storage, stored: Stored, kind: TensorType) -> bool:
    """Whether a value fills a workspace buffer of its own."""
    spec = storage.spec(stored.buffer)
    whole = is_dense(stored.view, kind.shape) and spec.element_count == kind.element_count
    return (
        whole
        and spec.kind == "workspace"
        and spec.dtype == kind.dtype
        and not storage.grows(stored.buffer)
    )
