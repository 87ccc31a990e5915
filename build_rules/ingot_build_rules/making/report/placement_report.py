"""On which device each value is computed and why, in the user's names, for the debug section,
``ingot compile`` and ``ingot why-device``.

In: a placed graph, names, globs. Out: plain values. Not done here: deciding (``placement``),
sentences (``view.device_chain``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.making.report.version_report import describe_sizes
from ingot_compiler.frontend.model.place_marks import matching_globs
from ingot_compiler.ir.graph import Graph, Names, Node
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.placement.control import devices_inside, is_control, nodes_inside, placed_inside
from ingot_compiler.placement.op_work import bytes_of, setting_of, work_of
from ingot_compiler.placement.place_reason import CANNOT_RUN, NO_VALUE, PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.verify_placed import HOST
from ingot_runtime.lazy_dataclass import dataclass

Globs = Sequence[tuple[str, str]]


def describe_devices(placed: PlacedGraph, profile: Profile, names: Names) -> dict[str, object]:
    """Return ``sizes``: those of ``--shape`` that the version is for; ``devices``: of each its
    name, how many nodes of the model run there, how many operations of a call these are;
    ``copies``: of each pair of devices how many values cross, and their bytes. Open sizes count as
    64; what is made of constants alone counts as nothing, what is in a branch or a body once."""
    called = [device.name for device in placed.devices]
    counts = _Counts(called, [set() for _ in called], [0] * len(called), {})
    counts.add(placed.graph, placed.device_of)
    nodes, flops, crossing = counts.nodes, counts.flops, counts.crossing
    return {
        "sizes": describe_sizes(profile, names),
        "devices": [
            {"name": name, "node_count": len(own), "operation_count": count}
            for name, own, count in zip(called, nodes, flops, strict=True)
        ],
        "copies": [
            {
                "source": called[source],
                "destination": called[destination],
                "copy_count": len(sizes),
                "size_bytes": sum(sizes),
            }
            for (source, destination), sizes in sorted(crossing.items())
        ],
    }


@dataclass(frozen=True, slots=True)
class _Counts:
    """By device the nodes of the model and the operations; by pair of devices the bytes of each
    value that crosses."""

    names: Sequence[str]
    nodes: list[set[int]]
    flops: list[int]
    crossing: dict[tuple[int, int], list[int]]

    def add(self, graph: Graph, device_of: Sequence[int]) -> None:
        """Count the nodes of a graph, and those inside of them."""
        setting = setting_of(graph)
        for node in graph.nodes:
            device = device_of[node.results[0]] if node.results else 0
            if node.op == "copy" and node.operands[0] not in setting.constants:
                pair = device_of[node.operands[0]], device
                size_bytes = bytes_of(graph.types[node.operands[0]])
                self.crossing.setdefault(pair, []).append(size_bytes)
            elif node.op != "copy" and not (
                node.results and setting.constants.issuperset(node.results)
            ):
                self.nodes[device].update(node.source)
                if is_control(node):
                    for region in node.regions:
                        self.add(region, devices_inside(region, device_of, self.names))
                else:
                    self.flops[device] += work_of(node, setting).all_flops


def describe_values(
    placed: PlacedGraph, names: Names, shown: Names, globs: Globs
) -> list[dict[str, object]]:
    """Return a row for each value of the graph, in its order: what it is, its device, the reason.

    ``nodes``: those of the model that it is of. ``name``: of an input or a constant. ``of``: what a
    copy is a copy of. ``from``: the
    row that the reason leads to. ``asked``: the device that does not run it. ``globs``: the numbers
    of those that match its node, from 1, the one that counts last. ``picoseconds``: what ``auto``
    compared. ``shown``: the names that the bundle tells, which may be numbers. The nodes inside of
    control flow are the last rows.
    """
    makers = placed.graph.makers()
    outside = [
        {
            **_what(placed, value, makers.get(value), names, shown, globs),
            "device": placed.devices[placed.device_of[value]].name,
            **_reason(placed, placed.reasons[value]),
        }
        for value in range(len(placed.graph.types))
    ]
    inside = zip(placed_inside(placed.graph), placed.inside, strict=True)
    control = _control_sources(placed.graph)
    return [
        *outside,
        *(
            _row_inside(placed, node, reason, (names, shown), globs)
            for node, reason in inside
            if is_control(node) or not control.issuperset(node.source)
        ),
    ]


def _control_sources(graph: Graph) -> set[int]:
    """The nodes of the model that are control flow: what is made of them inside of it, such as the
    slices of a Scan, is not what they are called."""
    inside = (each for node in graph.nodes for each in (node, *nodes_inside(node)))
    return {ordinal for node in inside if is_control(node) for ordinal in node.source}


def _row_inside(
    placed: PlacedGraph, node: Node, reason: PlaceReason, names: tuple[Names, Names], globs: Globs
) -> dict[str, object]:
    """The row of a node inside of control flow."""
    _, shown = names
    return {
        "op": node.op,
        "nodes": [list(shown.nodes[ordinal]) for ordinal in node.source],
        **_globs_of(node, reason, names, globs),
        "device": node.mark or HOST,
        **_reason(placed, reason),
    }


def fallen_back(placed: PlacedGraph, names: Names) -> list[str]:
    """Say of each node that its device has no code for that the host runs it."""
    nodes = [
        (node, placed.reasons[result]) for node in placed.graph.nodes for result in node.results
    ]
    nodes += zip(placed_inside(placed.graph), placed.inside, strict=True)
    found: dict[str, None] = {}
    for node, reason in nodes:
        if reason.kind == "fallback" and node.source:
            name, op = names.nodes[node.source[-1]]
            shown = f"device {reason.device} has no code for it"
            found[f"node {name!r} ({op}) runs on the host: {shown}"] = None
    return list(found)


def _what(
    placed: PlacedGraph, value: int, node: Node | None, names: Names, shown: Names, globs: Globs
) -> dict[str, object]:
    if node is None:
        return {"op": "", "nodes": [], "name": shown.inputs[placed.graph.inputs.index(value)]}
    row: dict[str, object] = {
        "op": node.op,
        "nodes": [list(shown.nodes[ordinal]) for ordinal in node.source],
    }
    if node.op == "constant":
        row["name"] = shown.weights[int(node.text("weight"))]
    if node.op == "copy":
        row["of"] = node.operands[0]
    return {**row, **_globs_of(node, placed.reasons[value], (names, shown), globs)}


def _globs_of(
    node: Node, reason: PlaceReason, both_names: tuple[Names, Names], globs: Globs
) -> Mapping[str, object]:
    """The globs that match a node, where one of them is why it is there, or what the planner of a
    program said; ``both_names``: the model's, and those that the bundle tells."""
    names, shown = both_names
    if not node.source or reason.kind not in ("marked", "auto", "fallback"):
        return {}
    numbers = matching_globs(names.nodes[node.source[-1]][0], globs)
    if numbers:
        return {"globs": [number + 1 for number in numbers]}
    steps = shown.plans[node.source[-1]] if shown.plans else ()
    return {"plan": list(steps)} if steps else {}


def _reason(placed: PlacedGraph, reason: PlaceReason) -> Mapping[str, object]:
    row: dict[str, object] = {"reason": reason.kind}
    if reason.value != NO_VALUE:
        row["from"] = reason.value
    if reason.device:
        row["asked"] = reason.device
    if reason.picoseconds:
        row["picoseconds"] = [
            [device.name, each]
            for device, each in zip(placed.devices, reason.picoseconds, strict=True)
            if each != CANNOT_RUN
        ]
    return row
