"""What ``--place auto`` decides about: units, and the values that may be copied between them.

In: a graph with marks, how long each device takes, what each of them runs. Out: ``PlacingUnits``.
Not done here: what copies cost, deciding (``choose_devices``).

What is decided together is a unit: a node that is left to us, with the nodes without a mark that
follow it; inside of control flow none follows another. Marked nodes, inputs, outputs and control
flow are where they are. The outermost graph is region 0, those inside of it follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ingot_compiler.ir.graph import AUTO, Graph, Node
from ingot_compiler.placement.control import HOST_OPS, is_control
from ingot_compiler.placement.how_often import how_often, times_over
from ingot_compiler.placement.least_cost import FORBIDDEN
from ingot_compiler.placement.op_work import (
    Setting,
    bytes_of,
    setting_of,
    settings_inside,
    work_of,
)
from ingot_compiler.placement.predicted_time import DeviceTimes
from ingot_runtime.lazy_dataclass import dataclass

Refuses = Callable[[Node, Graph, int], bool]
"""Whether a node of a graph cannot run on a device, by its number."""
Path = tuple[int, ...]
"""Where a node is: its index in the graph; inside of control flow behind the path of that node and
the number of the region."""


@dataclass(slots=True)
class PlacingUnit:
    """Nodes that run on one device, one of ``devices``: what they cost on each in a call, and which
    node leads them."""

    devices: tuple[int, ...]
    picoseconds: list[int]
    leader: Path


@dataclass(slots=True)
class PlacingValue:
    """A value that may be copied: who makes it and in which region, and who reads it, by region. A
    unit is its number, a device that is fixed -1 less its number."""

    size_bytes: int
    maker: int
    home: int
    readers: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def read_by(self, owner: int, region: int) -> None:
        """Note a reader."""
        if region in self.readers:
            self.readers[region].add(owner)
        else:
            self.readers[region] = {owner}

    def units(self) -> list[int]:
        """The units that make or read it, ascending."""
        owners = {self.maker}.union(*self.readers.values())
        return sorted([owner for owner in owners if owner >= 0])


@dataclass(frozen=True, slots=True)
class _Region:
    """The graph being read: which region it is, where, with all values that it sees."""

    setting: Setting
    number: int
    path: Path
    values: dict[int, PlacingValue]


@dataclass(slots=True)
class PlacingUnits:
    """Units and values of a graph. ``often``: how often each region runs in a call; ``around``: the
    region that has it inside, of the outermost itself."""

    names: Sequence[str]
    times: Sequence[DeviceTimes]
    refuses: Refuses
    units: list[PlacingUnit] = field(default_factory=list[PlacingUnit])
    values: list[PlacingValue] = field(default_factory=list[PlacingValue])
    often: list[float] = field(default_factory=list[float])
    around: list[int] = field(default_factory=list[int])

    def read(self, graph: Graph) -> None:
        """Find units, and who reads what."""
        self._read(setting_of(graph), 1.0, 0, (), {})

    def devices(self, owner: int) -> tuple[int, ...]:
        """Where an owner may be."""
        return (-1 - owner,) if owner < 0 else self.units[owner].devices

    def up_to(self, home: int, region: int) -> Iterator[int]:
        """A region and those around it, up to the one that makes a value."""
        while region != home:
            yield region
            region = self.around[region]
        yield home

    def copied_in(self, home: int, readers: Iterable[int]) -> tuple[int, ...]:
        """Where a value of the region ``home`` is copied that these regions read on a device: where
        that happens least often, the further outside the better (``copies_ahead``)."""
        read = set(readers)
        copies: dict[int, tuple[int, ...]] = {}
        for region in sorted({up for each in read for up in self.up_to(home, each)}, reverse=True):
            inside = copies.get(region, ())
            is_here = region in read or self._runs(inside) >= self.often[region]
            copies[region] = (region,) if is_here else inside
            if region != home:
                up = self.around[region]
                copies[up] = (*copies.get(up, ()), *copies[region])
        return copies[home]

    def _runs(self, regions: Iterable[int]) -> float:
        return sum([self.often[region] for region in regions])

    def _read(
        self,
        setting: Setting,
        often: float,
        around: int,
        path: Path,
        seen: Mapping[int, PlacingValue],
    ) -> None:
        region = _Region(setting, len(self.often), path, dict(seen))
        self.often.append(often)
        self.around.append(around)
        graph = setting.graph
        for value in graph.inputs:
            self._add_value(value, fixed(0), region)
        for index, node in enumerate(graph.nodes):
            if node.results and setting.constants.issuperset(node.results):
                continue
            owner = self._owner(index, node, region)
            self._add_work(node, owner, region)
            self._add_readers(node.operands, owner, region)
            if is_control(node):
                self._read_inside(index, node, region)
            for value in node.results:
                self._add_value(value, owner, region)
        self._add_readers(graph.outputs, fixed(0), region)

    def _read_inside(self, index: int, node: Node, region: _Region) -> None:
        inside = settings_inside(node, region.setting)
        often = how_often(node, region.setting, self.often[region.number])
        for number, (setting, each) in enumerate(zip(inside, often, strict=True)):
            path = *region.path, index, number
            self._read(setting, each, region.number, path, region.values)

    def _add_value(self, value: int, owner: int, region: _Region) -> None:
        made = PlacingValue(bytes_of(region.setting.graph.types[value]), owner, region.number)
        region.values[value] = made
        self.values.append(made)

    def _add_readers(self, read: Sequence[int], owner: int, region: _Region) -> None:
        for value in read:
            if value in region.values:
                region.values[value].read_by(owner, region.number)

    def _owner(self, index: int, node: Node, region: _Region) -> int:
        """The unit of a node, or the device where it is fixed, as ``place`` decides it."""
        if node.regions or node.op in HOST_OPS or not node.results:
            return fixed(0)
        if node.mark == AUTO:
            return self._new_unit(index, node, region)
        if node.mark:
            device = self.names.index(node.mark)
            return fixed(0 if self.refuses(node, region.setting.graph, device) else device)
        if region.path:
            return fixed(0)
        values = region.values
        return next((values[value].maker for value in node.operands if value in values), fixed(0))

    def _new_unit(self, index: int, node: Node, region: _Region) -> int:
        graph = region.setting.graph
        able = [
            device for device in range(len(self.names)) if not self.refuses(node, graph, device)
        ]
        if able == [0]:
            return fixed(0)
        self.units.append(PlacingUnit(tuple(able), [0] * len(able), (*region.path, index)))
        return len(self.units) - 1

    def _add_work(self, node: Node, owner: int, region: _Region) -> None:
        if owner >= 0:
            unit, setting, often = self.units[owner], region.setting, self.often[region.number]
            work = work_of(node, setting)
            for label, device in enumerate(unit.devices):
                taken = times_over(self.times[device].of_work(work, node, setting), often)
                whole = unit.picoseconds[label] + taken
                is_refused = self.refuses(node, setting.graph, device)
                unit.picoseconds[label] = FORBIDDEN if is_refused else whole


def fixed(device: int) -> int:
    """The owner that is a device."""
    return -1 - device
