"""Fusion: layouts and operator groups, on each device for its target.

In: a ``PlacedGraph`` and the rules of its devices. Out: the ``FusedGraph`` (stage 6). Not done
here: loops (``lower``), addresses (``plan_memory``). The order of decisions is that of the graph;
nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.errors import LimitError, UnsupportedError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import nodes_text
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.precision import F32, SPEED
from ingot_compiler.lowering.fusion.composite import fuse_composite
from ingot_compiler.lowering.fusion.control import CONTROL_RULES
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf
from ingot_compiler.lowering.fusion.device_rules import Anchor, DeviceRules
from ingot_compiler.lowering.fusion.flatten import FlatGraph, flatten
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.hold import append, hold_states
from ingot_compiler.lowering.fusion.layout import image_demands
from ingot_compiler.lowering.fusion.movement import MOVEMENT, MovementRule
from ingot_compiler.lowering.fusion.require_sizes import require_sizes
from ingot_compiler.lowering.fusion.slices import lay_slices_together
from ingot_compiler.lowering.fusion.store_outputs import store_outputs
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.early_copies import begin_copies_early
from ingot_compiler.lowering.groups.fused import FusedGraph
from ingot_compiler.lowering.groups.states import states_of
from ingot_compiler.lowering.groups.tuned_methods import Pairs, TunedMethods
from ingot_compiler.lowering.ops import INDEXED_OPERANDS, has_element_rule
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.lazy_dataclass import dataclass

_MOVEMENT: dict[str, MovementRule] = {**MOVEMENT, "append": append}


def fuse(
    placed: PlacedGraph,
    devices: Sequence[DeviceRules],
    precision: str = F32,
    optimize: str = SPEED,
    methods: Pairs = (),
) -> FusedGraph:
    """Group the operations of a graph into kernels; UnsupportedError names every op without
    lowering.

    ``devices``: the rules of each device of the table, the host's first. A kernel never holds
    operations of two devices: every crossing is a ``copy``, whose operand is stored.
    """
    flat = flatten(placed, [device.legalise for device in devices])
    graph = flat.graph
    anchors = [devices[_device(flat, node)].anchors.get(node.op) for node in graph.nodes]
    regions = [region for regions in flat.regions.values() for region in regions]
    returned = [value for region in regions for value in region.outputs]
    demands = image_demands(_image_readers(graph, anchors))
    values = FusionValues(graph, flat.device_of, returned, demands)
    targets = [device.target for device in devices]
    tuned = TunedMethods(dict(methods))
    fuser = Fuser(values, graph.inputs, targets, precision, optimize, tuned)
    _refuse_unknown(values, graph, anchors)
    hold_states(fuser, graph.inputs, states_of(placed))
    _Walk(fuser, flat, anchors).run(0, len(graph.nodes))
    store_outputs(fuser, graph.outputs)
    return FusedGraph(
        tuple(graph.types[value] for value in graph.inputs),
        tuple(graph.types[value] for value in graph.outputs),
        fuser.storage.buffers,
        begin_copies_early(fuser.steps, fuser.storage.buffers),
        fuser.storage.constants,
    )


def _device(flat: FlatGraph, node: Node) -> int:
    """Where a node runs; one without results runs on the host."""
    return flat.device_of[node.results[0]] if node.results else 0


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
        elif node.op == "composite":
            fuse_composite(fuser, node)
        elif not _is_folded(fuser.values, node):
            require_sizes(fuser, node)
            if node.op in _MOVEMENT:
                _MOVEMENT[node.op](fuser, node)
            elif anchor is not None:
                anchor.rule(fuser, index, node)
            elif node.op != "constant":
                _defer_elements(fuser, index, node)


def _is_folded(values: FusionValues, node: Node) -> bool:
    scalar = node.op == "literal" and values.type_of(node.results[0]).rank == 0
    return (
        not scalar
        and bool(node.results)
        and all(values.is_constant(result) for result in node.results)
    )


def _refuse_unknown(values: FusionValues, graph: Graph, anchors: Sequence[Anchor | None]) -> None:
    pairs = zip(graph.nodes, anchors, strict=True)
    known = {"composite", "constant", *_MOVEMENT, *CONTROL_RULES}
    ops: set[OpName] = {node.op for node in graph.nodes}
    strange = {op for op in ops if not has_element_rule(op) and op not in known}
    unknown = sorted(
        {
            node.op
            for node, anchor in pairs
            if node.op in strange and not anchor and not _is_folded(values, node)
        }
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
    anchor = -1
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            part = fuser.absorb(
                operand, shape, anchor_allowed=fuser.values.type_of(operand).shape == shape
            )
        if part is not None and part.anchored:
            if anchored is not None and part.anchor != anchor:
                # Two anchors: the earlier one becomes an operand.
                fuser.store_because(anchored, "its user takes in another operand's loops")
            anchored, anchor = operand, part.anchor
    leaves: list[Leaf] = []
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            deferred = fuser.deferred(operand)
            is_own = deferred is not None and deferred.anchor == anchor
            part = fuser.absorb(operand, shape, anchor_allowed=is_own)
        if part is None:
            if (node.op, position) == ("gather_nd", 0):
                lay_slices_together(fuser, node, operand)
            fuser.keep_repeats(operand)
            leaves.append(fuser.leaf(operand))
        else:
            parts.append(part)
    fuser.defer(index, parts, leaves)
