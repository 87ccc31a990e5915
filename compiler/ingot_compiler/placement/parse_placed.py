"""Reads the text form of a placed graph.

In: text, as ``print_placed`` writes it or by hand. Out: a ``PlacedGraph`` that ``verify_placed``
accepts, or ``ModelError`` with line and column. Not done here: which kinds of devices there is code
for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.text.parse_graph import Places, read_graph
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.placement.place_reason import NO_VALUE, REASON_KINDS, PlaceReason
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.verify_placed import DEVICE, INSIDE, VALUE, find_placed_problems
from ingot_compiler.placement.virtual_device import (
    ANY_ID,
    ANY_SCOPE,
    ANY_TARGET,
    ANY_TYPE,
    DeclaredDevice,
    VirtualDevice,
)


def parse_placed(text: str) -> PlacedGraph:
    """The placed graph that ``text`` writes down; ``parse_placed(print_placed(p)) == p``."""
    reader, places = Reader("placed", text), Places()
    devices: list[DeclaredDevice] = []
    while reader.at("device"):
        places[DEVICE, len(devices)] = reader.token
        devices.append(_device(reader, len(devices)))
    graph = read_graph(reader, places)
    values = _values(reader, places, devices, graph)
    inside = _inside(reader, places)
    reader.end()
    if len(values) != len(graph.types):
        expected = f"expected a place for each of {len(graph.types)} values, got {len(values)}"
        raise reader.fail(expected)
    indices, reasons = (
        tuple(device for device, _ in values),
        tuple(reason for _, reason in values),
    )
    placed = PlacedGraph(graph, tuple(devices), indices, reasons, inside)
    reader.check(find_placed_problems(placed), places)
    return placed


def _values(
    reader: Reader, places: Places, devices: Sequence[DeclaredDevice], graph: Graph
) -> list[tuple[int, PlaceReason]]:
    """(index of its device, the reason) of each value that comes next."""
    names = [device.name for device in devices]
    values: list[tuple[int, PlaceReason]] = []
    while reader.token.kind == "VALUE":
        places[VALUE, len(values)] = reader.token
        values.append(_value(reader, len(values), names, graph))
    return values


def _inside(reader: Reader, places: Places) -> tuple[PlaceReason, ...]:
    """The reasons of the nodes inside of control flow."""
    found: list[PlaceReason] = []
    while reader.at("inside"):
        places[INSIDE, len(found)] = reader.token
        reader.expect("inside", str(len(found)), ":")
        found.append(_reason(reader))
    return tuple(found)


def _device(reader: Reader, number: int) -> DeclaredDevice:
    start = reader.expect("device", str(number), ":")
    name = reader.string()
    identity = reader.integer() if reader.accept("id") else ANY_ID
    device_type = reader.string() if reader.accept("type") else ANY_TYPE
    target = reader.string() if reader.accept("target") else ANY_TARGET
    scope = reader.string() if reader.accept("scope") else ANY_SCOPE
    try:
        return DeclaredDevice(name, VirtualDevice(device_type, identity, target, scope))
    except UserError as error:
        raise reader.fail(f"{error.what}: {error.why}", start) from None


def _value(reader: Reader, number: int, names: list[str], graph: Graph) -> tuple[int, PlaceReason]:
    start = reader.token
    if reader.value() != number or number >= len(graph.types):
        count = len(graph.types)
        raise reader.fail(
            f"expected the place of each of {count} values, in order, got {start}", start
        )
    reader.expect("on")
    token = reader.token
    name = reader.string()
    if name not in names:
        raise reader.fail(f"expected a device out of {', '.join(names)}, got {name}", token)
    reader.expect(":")
    return names.index(name), _reason(reader)


def _reason(reader: Reader) -> PlaceReason:
    kind = reader.choice(REASON_KINDS)
    is_value = reader.token.kind == "VALUE" and reader.ahead() != "on"  # not the next line
    value = reader.value() if is_value else NO_VALUE
    device = reader.string() if reader.token.kind == "STRING" else ""
    picoseconds = reader.items(reader.integer, "]") if reader.accept("[") else ()
    return PlaceReason(kind, value, device, picoseconds)
