"""Where everything runs and why, in the user's names: what the debug section, ``ingot compile`` and
``ingot why-device`` tell.

In: a placed graph, names, globs. Out: plain values. Not done here: deciding (``placement``),
sentences (``view.device_chain``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.report.version_report import describe_sizes
from ingot_compiler.frontend.place_marks import matching_globs
from ingot_compiler.ir.graph import Names, Node
from ingot_compiler.ir.profile import Profile
from ingot_compiler.placement.op_work import bytes_of, setting_of, work_of
from ingot_compiler.placement.place_reason import CANNOT_RUN, NO_VALUE
from ingot_compiler.placement.placed import PlacedGraph

Globs = Sequence[tuple[str, str]]


def describe_devices(placed: PlacedGraph, profile: Profile, names: Names) -> dict[str, object]:
    """Return ``sizes``: those of ``--shape`` that the version is for; ``devices``: of each its name, how many nodes of the model run there, how many
    operations of a call these are; ``copies``: of each pair of devices how many values cross, and
    their bytes. Open sizes count as 64; what is made of constants alone counts as nothing."""
    graph, called = placed.graph, [device.name for device in placed.devices]
    setting = setting_of(graph)
    nodes: list[set[int]] = [set() for _ in called]
    flops = [0] * len(called)
    crossing: dict[tuple[int, int], list[int]] = {}
    for node in graph.nodes:
        device = _device_of(placed, node)
        if node.op == "copy" and node.operands[0] not in setting.constants:
            pair = placed.device_of[node.operands[0]], device
            crossing.setdefault(pair, []).append(bytes_of(graph.types[node.operands[0]]))
        elif node.op != "copy" and not (
            node.results and setting.constants.issuperset(node.results)
        ):
            nodes[device].update(node.source)
            flops[device] += work_of(node, setting).all_flops
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


def describe_values(
    placed: PlacedGraph, names: Names, told: Names, globs: Globs
) -> list[dict[str, object]]:
    """Return a row for each value of the graph, in its order: what it is, its device, the reason.

    ``nodes``: those of the model that it is of. ``name``: of an input or a constant. ``of``: what a
    copy is a copy of. ``from``: the
    row that the reason leads to. ``asked``: the device that does not run it. ``globs``: the numbers
    of those that match its node, from 1, the one that counts last. ``picoseconds``: what ``auto``
    compared. ``told``: the names that the bundle tells, which may be numbers.
    """
    makers = {result: node for node in placed.graph.nodes for result in node.results}
    return [
        {
            **_what(placed, value, makers.get(value), names, told, globs),
            "device": placed.devices[placed.device_of[value]].name,
            **_reason(placed, value),
        }
        for value in range(len(placed.graph.types))
    ]


def fallen_back(placed: PlacedGraph, names: Names) -> list[str]:
    """Say of each node that its device has no code for that the host runs it."""
    found: dict[str, None] = {}
    for node in placed.graph.nodes:
        for reason in (placed.reasons[result] for result in node.results):
            if reason.kind == "fallback" and node.source:
                name, op = names.nodes[node.source[-1]]
                text = f"node {name!r} ({op}) runs on the host: device {reason.device} "
                found[f"{text}has no code for it"] = None
    return list(found)


def _device_of(placed: PlacedGraph, node: Node) -> int:
    return placed.device_of[node.results[0]] if node.results else 0


def _what(
    placed: PlacedGraph, value: int, node: Node | None, names: Names, told: Names, globs: Globs
) -> dict[str, object]:
    if node is None:
        return {"op": "", "nodes": [], "name": told.inputs[placed.graph.inputs.index(value)]}
    row: dict[str, object] = {
        "op": node.op,
        "nodes": [list(told.nodes[ordinal]) for ordinal in node.source],
    }
    if node.op == "constant":
        row["name"] = told.weights[int(node.text("weight"))]
    if node.op == "copy":
        row["of"] = node.operands[0]
    numbers = matching_globs(names.nodes[node.source[-1]][0], globs) if node.source else ()
    if numbers and placed.reasons[value].kind in ("marked", "auto", "fallback"):
        row["globs"] = [number + 1 for number in numbers]
    return row


def _reason(placed: PlacedGraph, value: int) -> Mapping[str, object]:
    reason = placed.reasons[value]
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
