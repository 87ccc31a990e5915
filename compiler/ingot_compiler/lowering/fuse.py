"""Fusion: layouts and operator groups, on each device for its target.

In: a ``PlacedGraph`` and the targets. Out: the ``FusedGraph`` (stage 6). Not done here: loops (``lower``), addresses
(``plan_memory``). The order of decisions is that of the graph; nothing is searched.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ingot_compiler.ir.errors import LimitError, UnsupportedError
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.message import nodes_text
from ingot_compiler.lowering.fused import BufferSpec, FusedGraph
from ingot_compiler.lowering.fusion.anchors import ANCHORS
from ingot_compiler.lowering.fusion.bounds import require_bounds
from ingot_compiler.lowering.fusion.control import CONTROL_RULES
from ingot_compiler.lowering.fusion.flatten import FlatGraph, flatten
from ingot_compiler.lowering.fusion.fuser import Deferred, Fuser, Stored
from ingot_compiler.lowering.fusion.movement import MOVEMENT
from ingot_compiler.lowering.ops import ELEMENTS, INDEXED_OPERANDS
from ingot_compiler.lowering.views import dense_view, is_dense
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.targets.target import Target


def fuse(placed: PlacedGraph, targets: Sequence[Target]) -> FusedGraph:
    """Group the operations of a graph into kernels; UnsupportedError names every op without lowering.

    ``targets``: what each device of the table runs, the host's first. A kernel never holds operations of two devices: every
    crossing is a ``copy``, whose operand is stored.
    """
    flat = flatten(placed.graph)
    graph = flat.graph
    returned = [value for regions in flat.regions.values() for region in regions for value in region.outputs]
    fuser = Fuser(graph, placed.device_of, targets, returned)
    _refuse_unknown([node for node in graph.nodes if not _is_folded(fuser, node)])
    _run(fuser, flat, 0, len(graph.nodes))
    _store_outputs(fuser)
    return FusedGraph(
        tuple(graph.types[value] for value in graph.inputs),
        tuple(graph.types[value] for value in graph.outputs),
        tuple(fuser.buffers),
        tuple(fuser.steps),
        tuple(fuser.constants),
    )


def _run(fuser: Fuser, flat: FlatGraph, first: int, last: int) -> None:
    """Fuse the nodes from ``first`` to ``last`` (exclusive); those of regions with the node that holds them."""
    index = first
    while index < last:
        node = flat.graph.nodes[index]
        try:
            if index in flat.regions:
                CONTROL_RULES[node.op](fuser, node, flat.regions[index], functools.partial(_run, fuser, flat))
            elif not _is_folded(fuser, node):
                fuser.require_sizes(node)
                if node.op in ELEMENTS or node.op == "broadcast_to":
                    fuser.require_countable(node)
                require_bounds(fuser, node)
                _visit(fuser, index, node)
        except LimitError as error:
            raise (error if error.where else error.at(nodes_text(node.source))) from None
        index = flat.end(index)


def _is_folded(fuser: Fuser, node: Node) -> bool:
    scalar = node.op == "literal" and fuser.types[node.results[0]].rank == 0
    return not scalar and bool(node.results) and all(fuser.is_constant(result) for result in node.results)


def _refuse_unknown(nodes: list[Node]) -> None:
    unknown = sorted({node.op for node in nodes} - {"constant", *ELEMENTS, *ANCHORS, *MOVEMENT, *CONTROL_RULES})
    if unknown:
        raise UnsupportedError(
            f"no lowering for {', '.join(unknown)}",
            why="these operations have no kernel on a CPU yet",
            do="report the model",
        )


def _visit(fuser: Fuser, index: int, node: Node) -> None:
    if node.op in MOVEMENT:
        MOVEMENT[node.op](fuser, node)
    elif node.op in ANCHORS:
        ANCHORS[node.op](fuser, index, node)
    elif node.op != "constant":
        _defer_elements(fuser, index, node)


def _defer_elements(fuser: Fuser, index: int, node: Node) -> None:
    """An elementwise node takes its single-use operands into its own kernel, at most one of them with loops."""
    shape = fuser.types[node.results[0]].shape
    parts: list[Deferred] = []
    anchored: int | None = None
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            part = fuser.absorb(operand, shape, anchor_allowed=fuser.types[operand].shape == shape)
        if part is not None and part.anchored:
            if anchored is not None and anchored != operand:
                fuser.ends[anchored] = "its user takes in another operand's loops"
                fuser.where(anchored)  # two anchors: the earlier one becomes an operand
            anchored = operand
    leaves: list[tuple[int, Stored]] = []
    for position, operand in enumerate(node.operands):
        part = None
        if position not in INDEXED_OPERANDS.get(node.op, ()):
            part = fuser.absorb(operand, shape, anchor_allowed=operand == anchored)
        if part is None:
            leaves.append(fuser.leaf(operand))
        else:
            parts.append(part)
    fuser.defer(index, parts, leaves)


def _store_outputs(fuser: Fuser) -> None:
    """Every graph output in its own dense buffer: the workspace buffer it fills becomes it, or it is copied."""
    taken: set[int] = set()
    for position, value in enumerate(fuser.graph.outputs):
        stored = fuser.where(value)
        kind = fuser.types[value]
        spec = fuser.buffers[stored.buffer]
        whole = is_dense(stored.view, kind.shape) and spec.element_count == kind.element_count
        mine = spec.kind == "workspace" and stored.buffer not in taken | fuser.grown
        if mine and whole and spec.dtype == kind.dtype:
            fuser.buffers[stored.buffer] = BufferSpec("output", kind.dtype, kind.element_count, position)
        else:
            spec = BufferSpec("output", kind.dtype, kind.element_count, position)
            place = Stored(fuser.new_buffer(spec), dense_view(kind.shape))
            fuser.copy(value, place)
            stored = place
        taken.add(stored.buffer)
