"""Placement: every value gets a virtual device, every crossing becomes a visible ``copy`` node.

In: an optimized graph, the declared devices, what they run and cost. Out: ``PlacedGraph``. Not done
here: layouts and fusion (``fuse``), binding to physical devices (the loader), the choice of a
device for a node that is marked ``auto`` (``choose_devices``).

A node runs where it is marked. An unmarked node runs where its first operand lives that is no
constant, a constant where it is read first, anything else on the host, and so does what a device
has no code for. Inputs and outputs of the graph live on the host. What is inside of control flow
is placed by ``place_region``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.graph import AUTO, Graph, Node, OptimizedGraph, make_attributes
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_compiler.ir.renumber import first_free_id, renumber
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.choices_inside import ChoicesInside, auto_reason
from ingot_compiler.placement.choose_devices import DeviceChoice, choose_devices
from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.placement.control import (
    HOST_OPS,
    is_control,
    is_made_of_nothing,
    nodes_inside,
)
from ingot_compiler.placement.copies_ahead import CopiesAhead
from ingot_compiler.placement.op_work import Setting, setting_of
from ingot_compiler.placement.place_reason import NO_VALUE, PlaceReason
from ingot_compiler.placement.place_region import Around, RegionPlacer
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.placing_rules import PlacingRules
from ingot_compiler.placement.placing_units import Path
from ingot_compiler.placement.virtual_device import DeclaredDevice
from ingot_runtime.format.device_text import suggest_name
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class _Place:
    """A device's index and the reason."""

    device: int
    reason: PlaceReason


def place(
    optimized: OptimizedGraph,
    devices: Sequence[DeclaredDevice],
    rules: PlacingRules = PlacingRules(),  # noqa: B008 (a value)
) -> PlacedGraph:
    """Give every value a device and insert a copy once per value and device that needs it.

    Raises:
        UserError: a mark names no declared device, a name is declared twice, or the host is
            missing.
        UnsupportedError: a node is marked for a device that has no code for it, and ``rules``
            forbid that the host runs it.
    """
    table = Configuration(tuple(devices)).devices
    graph = optimized.graph
    names = [device.name for device in table]
    _check_marks(graph, names)
    choices = _choices(graph, names, rules)
    inside = ChoicesInside(names, rules, choices)
    placement = _Placement(inside.marked(graph), table, names, rules)
    return placement.run(choices, tuple(inside.reasons(graph)))


def _choices(
    graph: Graph, names: Sequence[str], rules: PlacingRules
) -> Mapping[Path, DeviceChoice]:
    """The devices of the nodes that are left to us."""
    inside = (each for node in graph.nodes for each in (node, *nodes_inside(node)))
    if len(names) == 1 or all(node.mark != AUTO for node in inside):
        return {}
    return choose_devices(
        graph,
        names,
        rules.times,
        lambda node, around, device: bool(rules.refusal(node, around, device)),
    )


def _check_marks(graph: Graph, names: Sequence[str]) -> None:
    for node in graph.nodes:
        if node.mark and node.mark not in (*names, AUTO):
            declare = message("declare it: ", OptionRef("device", f"{node.mark}=KIND"))
            raise UserError(
                f"no device named {node.mark!r}",
                where=_nodes(node),
                why=f"expected one of {', '.join(names)}",
                do=suggest_name(node.mark, tuple(names)) or declare,
            )
        for region in node.regions:
            _check_marks(region, names)


def _nodes(node: Node) -> Text:
    return (
        nodes_text(node.source) if node.source else f"a {node.op} that no imported node asked for"
    )


class _Placement:
    """The graph being rebuilt with copies; one use. Copies get ids above all others until the
    end."""

    def __init__(
        self,
        graph: Graph,
        devices: tuple[DeclaredDevice, ...],
        names: Sequence[str],
        rules: PlacingRules,
    ) -> None:
        self.graph = graph
        self.devices = devices
        self.names = names
        self.rules = rules
        self.nodes: list[Node] = []
        free = first_free_id(graph)
        self.types = [*graph.types, *[TensorType("bool", ())] * (free - len(graph.types))]
        self.place_of: dict[int, _Place] = dict.fromkeys(
            graph.inputs, _Place(0, PlaceReason("input"))
        )
        self.copies: dict[tuple[int, int], int] = {}
        self.makers = graph.makers()
        self.ahead = CopiesAhead(self._runs_on)
        self.inside = RegionPlacer(self.names, self.types, self._inside, self.ahead)

    def run(
        self, choices: Mapping[Path, DeviceChoice], inside: tuple[PlaceReason, ...]
    ) -> PlacedGraph:
        """Decide, then rebuild with copies; ``choices``: of the nodes that are left to us;
        ``inside``: the reasons of those inside of control flow."""
        for index, node in enumerate(self.graph.nodes):
            self._decide(node, choices.get((index,)))
        self._decide_constants()
        self._add_all()
        outputs = tuple(self._on(value, 0, (), NO_VALUE) for value in self.graph.outputs)
        rebuilt = Graph(self.graph.inputs, tuple(self.nodes), outputs, tuple(self.types))
        graph, renamed = renumber(rebuilt)
        places = [self.place_of[old] for old in renamed]
        indices = tuple(place.device for place in places)
        reasons = tuple(_with_value(place.reason, renamed) for place in places)
        return PlacedGraph(graph, self.devices, indices, reasons, inside)

    def _decide(self, node: Node, choice: DeviceChoice | None) -> None:
        """Place a node by its mark or operands; what is computed from constants alone stays
        open."""
        placed = [operand for operand in node.operands if operand in self.place_of]
        mark = "" if node.mark == AUTO else node.mark
        if node.op in HOST_OPS or (node.regions and not mark):
            place = _Place(0, PlaceReason("host_only"))
        elif mark:
            place = self._marked(node, self.names.index(mark), self.graph)
        elif choice is not None:
            place = _Place(choice.device, auto_reason(choice))
        elif placed:
            place = self._unmarked(node, placed[0])
        else:
            return
        self.place_of.update(dict.fromkeys(node.results, place))

    def _marked(self, node: Node, device: int, graph: Graph) -> _Place:
        """Where the user wants it, or on the host, if the device has no code for it."""
        why = self.rules.refusal(node, graph, device)
        if not why:
            return _Place(device, PlaceReason("marked"))
        if self.rules.fallback == "forbid":
            raise UnsupportedError(
                f"{node.op} on device {node.mark}",
                where=_nodes(node),
                why=why,
                do=message("leave it on the host, or give ", OptionRef("fallback", "warn")),
            )
        return _Place(0, PlaceReason("fallback", device=node.mark))

    def _unmarked(self, node: Node, operand: int) -> _Place:
        """Where its operand lives, or on the host."""
        device = self.place_of[operand].device
        if node.mark == AUTO:  # only the host runs it, or there is no other device
            return _Place(0, PlaceReason("host_only" if len(self.devices) > 1 else "default"))
        if self.rules.refusal(node, self.graph, device):
            return _Place(0, PlaceReason("host_only", operand, self.names[device]))
        return _Place(device, PlaceReason("follows", operand))

    def _decide_constants(self) -> None:
        """Constants live where they are read first; readers come later in the graph and are
        known."""
        users = self.graph.users()
        for node in reversed(self.graph.nodes):
            if not node.results or node.results[0] in self.place_of:
                continue
            readers = [index for result in node.results for index in users.get(result, ())]
            place = _Place(0, PlaceReason("returned"))
            if readers:
                reader = self.graph.nodes[readers[0]]
                place = _Place(
                    self._device_of(reader), PlaceReason("read_by", _first_result(reader))
                )
            self.place_of.update(dict.fromkeys(node.results, place))

    def _device_of(self, node: Node) -> int:
        return self.place_of[node.results[0]].device if node.results else 0

    def _runs_on(self, node: Node, graph: Graph) -> int:
        return self._device_of(node) if graph is self.graph else self._inside(node, graph)

    def _add_all(self) -> None:
        """All nodes, and the copies ahead of each that read their values elsewhere."""
        if not any(map(is_control, self.graph.nodes)):  # most graphs
            for node in self.graph.nodes:
                self._add(node, None)
            return
        setting = setting_of(self.graph)
        early_reads = self.ahead.of(setting)
        for node in self.graph.nodes:
            for value, device in self.inside.copied_before(node, setting, early_reads):
                self._on(value, device, node.source, _first_result(node))
            self._add(node, setting)

    def _add(self, node: Node, setting: Setting | None) -> None:
        """A node, and copies of what it reads elsewhere; no ``setting`` where nothing is control
        flow."""
        device, inside = self._device_of(node), self.inside
        if not node.regions and all(self.place_of[each].device == device for each in node.operands):
            self.nodes.append(node)  # nearly all nodes
            return
        read = sorted({*node.operands, *inside.read_on_host(node)})
        replaced = {
            value: self._on(value, device, node.source, _first_result(node)) for value in read
        }
        around = Around(
            lambda value: self.place_of[value].device, self._maker_of, replaced, self.copies.get
        )
        operands = tuple(replaced[value] for value in node.operands)
        placed = inside.placed(node, setting, around) if setting else node
        same = operands == placed.operands
        self.nodes.append(placed if same else replace(placed, operands=operands))

    def _maker_of(self, value: int) -> Node | None:
        """The node that makes a value of nothing, if it is such a value."""
        maker = self.makers.get(value)
        return maker if maker and is_made_of_nothing(maker) else None

    def _inside(self, node: Node, region: Graph) -> int:
        """Where a node of a region runs: where it is marked, or on the host."""
        if node.op in HOST_OPS or not node.operands or node.mark in ("", AUTO, self.names[0]):
            return 0
        return self._marked(node, self.names.index(node.mark), region).device

    def _on(self, value: int, device: int, source: tuple[int, ...], reader: int) -> int:
        """The value on ``device``: itself, or what stands for it there."""
        if self.place_of[value].device == device:
            return value
        if (value, device) not in self.copies:
            self.copies[value, device] = self._add_copy(value, device, source, reader)
        return self.copies[value, device]

    def _add_copy(self, value: int, device: int, source: tuple[int, ...], reader: int) -> int:
        """One copy, however many read it; what is made of nothing (a constant, a literal) is made
        there again."""
        copied = len(self.types)
        self.types.append(self.types[value])
        maker = self._maker_of(value)
        if maker is not None:
            self.place_of[copied] = _Place(device, PlaceReason("made_for", reader))
            self.nodes.append(replace(maker, results=(copied,)))
        else:
            self.place_of[copied] = _Place(device, PlaceReason("copied_for", reader))
            attributes = make_attributes({"destination": self.devices[device].name})
            self.nodes.append(Node("copy", (value,), (copied,), attributes, (), source))
        return copied


def _first_result(node: Node) -> int:
    return node.results[0] if node.results else NO_VALUE


def _with_value(reason: PlaceReason, renamed: Mapping[int, int]) -> PlaceReason:
    """The reason with the id that its value has now."""
    value = renamed.get(reason.value, NO_VALUE)
    return reason if value == reason.value else replace(reason, value=value)
