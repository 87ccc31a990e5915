"""Text form of a placed graph: the device table, the graph, where each value lives and why;
``parse_placed`` reads it back.

In: a ``PlacedGraph``. Out: text that ends with a newline. Not done here: placing (``place``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.placement.place_reason import NO_VALUE, PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import ANY_ID, DeclaredDevice


def print_placed(placed: PlacedGraph) -> str:
    """Print all of the stage; what a device leaves open is not written."""
    devices = "".join(
        f"device {index}: {_device(item)}\n" for index, item in enumerate(placed.devices)
    )
    return f"{devices}{print_graph(placed.graph)}" + "".join(
        f"{line}\n" for line in _places(placed)
    )


def _device(item: DeclaredDevice) -> str:
    device = item.device
    texts = {"type": device.device_type, "target": device.target, "scope": device.memory_scope}
    fields = [f"{name} {json.dumps(text)}" for name, text in texts.items() if text]
    number = [f"id {device.id}"] if device.id != ANY_ID else []
    return " ".join([json.dumps(item.name), *number, *fields])


def _places(placed: PlacedGraph) -> Iterator[str]:
    for value, (device, reason) in enumerate(zip(placed.device_of, placed.reasons, strict=True)):
        yield f"%{value} on {json.dumps(placed.devices[device].name)}: {_reason(reason)}"
    for number, reason in enumerate(placed.inside):
        yield f"inside {number}: {_reason(reason)}"


def _reason(reason: PlaceReason) -> str:
    words: list[str] = [reason.kind]
    words += [f"%{reason.value}"] if reason.value != NO_VALUE else []
    words += [json.dumps(reason.device)] if reason.device else []
    words += [json.dumps(reason.picoseconds)] if reason.picoseconds else []
    return " ".join(words)
