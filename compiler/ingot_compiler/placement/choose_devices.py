"""``auto``: which device each node runs on that the user leaves to us, so that a call is predicted
to take the least time.

In: a graph with marks, how long each device takes, what each of them runs. Out: the device of each such
node, and what the other ones would have cost. Not done here: copies (``place`` writes them), the
search (``least_cost``).

What is decided together is a unit: a node that is left to us, with the nodes without a mark that
follow it. A unit costs its work on its device. A value costs one copy for each other device that
reads it, however many nodes read it there. Marked nodes, inputs, outputs and control flow are where
they are. (decision 24)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.graph import AUTO, Graph, Node, captured
from ingot_compiler.placement.least_cost import FORBIDDEN, Costs, Table, least_cost
from ingot_compiler.placement.op_work import Setting, bytes_of, setting_of, work_of
from ingot_compiler.placement.place_region import HOST_OPS
from ingot_compiler.placement.predicted_time import DeviceTimes, copy_picoseconds
from ingot_runtime.lazy_dataclass import dataclass

_JOINT_UNITS_MAX = 4
"""The copies of a value that more units touch are variables, so that tables stay small."""
Copies = tuple[tuple[int, ...], ...]
"""``[source][destination]``: picoseconds of a copy."""
_Touching = tuple[int, tuple[tuple[int, ...], ...]]
"""Bytes of a value, and where each of those who make or read it may be."""
Refuses = Callable[[Node, int], bool]
"""Whether a node cannot run on a device, by its number."""


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """``device``: a number in the table; ``picoseconds``: what the node, those that follow it and the
    copies around them take on each device, all else being where it is; None where they cannot
    run."""

    device: int
    picoseconds: tuple[int | None, ...]


def choose_devices(
    graph: Graph, names: Sequence[str], times: Sequence[DeviceTimes], refuses: Refuses
) -> Mapping[int, DeviceChoice]:
    """Choose for each node that is marked ``auto``, by its index; ``names`` and ``times``: of the
    devices, the host first."""
    problem = _Problem(graph, names, times, refuses)
    problem.read()
    label_counts = [len(unit.devices) for unit in problem.units] + [2] * len(problem.shared)
    labels = least_cost(label_counts, problem.tables(), problem.firsts())
    return dict(problem.choices(labels))


@dataclass(slots=True)
class _Unit:
    """Nodes that run on one device, one of ``devices``: what they cost on each, and who they are."""

    devices: tuple[int, ...]
    picoseconds: list[int]
    leader: int


@dataclass(slots=True)
class _Value:
    """A value that may be copied: who makes it and who reads it; a unit is its number, a device
    that is fixed -1 less its number."""

    size_bytes: int
    maker: int
    readers: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class _Problem:
    """The costs of a graph as tables; one use. ``shared``: value and device for each copy that
    many units may ask for: a variable that says whether it is made. ``joint``, ``copies_of``: the
    tables and costs of copies that are known, by all that they depend on."""

    graph: Graph
    names: Sequence[str]
    times: Sequence[DeviceTimes]
    refuses: Refuses
    units: list[_Unit] = field(default_factory=list[_Unit])
    values: dict[int, _Value] = field(default_factory=dict[int, _Value])
    shared: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    joint: dict[_Touching, Table] = field(default_factory=dict[_Touching, Table])
    copies_of: dict[int, Copies] = field(default_factory=dict[int, Copies])

    def read(self) -> None:
        """Find units, and who reads what."""
        graph, setting = self.graph, setting_of(self.graph)
        for value in graph.inputs:
            self.values[value] = _Value(bytes_of(graph.types[value]), _fixed(0))
        for index, node in enumerate(graph.nodes):
            if node.results and setting.constants.issuperset(node.results):
                continue
            owner = self._owner(index, node)
            self._add_work(node, owner, setting)
            for value in {*node.operands, *captured(node)} & self.values.keys():
                self.values[value].readers.add(owner)
            for value in node.results:
                self.values[value] = _Value(bytes_of(graph.types[value]), owner)
        for value in graph.outputs:
            if value in self.values:
                self.values[value].readers.add(_fixed(0))
        self._share()

    def _owner(self, index: int, node: Node) -> int:
        """The unit of a node, or the device where it is fixed, as ``place`` decides it."""
        if node.regions or node.op in HOST_OPS or not node.results:
            return _fixed(0)
        if node.mark == AUTO:
            return self._new_unit(index, node)
        if node.mark:
            device = self.names.index(node.mark)
            return _fixed(0 if self.refuses(node, device) else device)
        return next(
            (self.values[value].maker for value in node.operands if value in self.values),
            _fixed(0),
        )

    def _new_unit(self, index: int, node: Node) -> int:
        able = [device for device in range(len(self.names)) if not self.refuses(node, device)]
        if able == [0]:
            return _fixed(0)
        self.units.append(_Unit(tuple(able), [0] * len(able), index))
        return len(self.units) - 1

    def _add_work(self, node: Node, owner: int, setting: Setting) -> None:
        if owner >= 0:
            unit, work = self.units[owner], work_of(node, setting)
            for label, device in enumerate(unit.devices):
                whole = unit.picoseconds[label] + self.times[device].of_work(work, node, setting)
                unit.picoseconds[label] = FORBIDDEN if self.refuses(node, device) else whole

    def _share(self) -> None:
        """Each copy of a value with many readers is a variable of its own."""
        for value, item in self.values.items():
            if len(_units(item)) > _JOINT_UNITS_MAX:
                for device in range(len(self.names)):
                    if self._asking(item, device):
                        self.shared.append((value, device))

    def _asking(self, item: _Value, device: int) -> list[tuple[int, int]]:
        """Who may read a value on a device, with the label that says so."""
        found = (
            (owner, self._label(owner, device))
            for owner in sorted(item.readers)
            if owner != item.maker
        )
        return [(owner, label) for owner, label in found if label is not None]

    def _label(self, owner: int, device: int) -> int | None:
        """The label by which an owner is on a device; None where it cannot be there."""
        devices = self.devices(owner)
        return devices.index(device) if device in devices else None

    def devices(self, owner: int) -> tuple[int, ...]:
        """Where an owner may be."""
        return (-1 - owner,) if owner < 0 else self.units[owner].devices

    def tables(self) -> list[Costs]:
        """Every cost: of units, of copies."""
        found = [
            Costs((number,), np.array(unit.picoseconds, np.int64))
            for number, unit in enumerate(self.units)
        ]
        for number, (value, device) in enumerate(self.shared, len(self.units)):
            found += self._shared_tables(self.values[value], device, number)
        for item in self.values.values():
            if 0 < len(_units(item)) <= _JOINT_UNITS_MAX:
                found += self._joint_table(item)
        return found

    def _joint_table(self, item: _Value) -> Iterator[Costs]:
        """What all copies of a value cost, by where it is made and by where each reader is."""
        owners = (item.maker, *sorted(item.readers - {item.maker}))
        devices = tuple(map(self.devices, owners))
        kind = item.size_bytes, devices
        if kind not in self.joint:
            self.joint[kind] = _table_of_copies(self.copies(item.size_bytes), *devices)
        table, units = self.joint[kind], [owner for owner in owners if owner >= 0]
        if table.any():
            order = sorted(range(len(units)), key=units.__getitem__)
            wide = table.reshape([len(self.devices(unit)) for unit in units])
            yield Costs(tuple(sorted(units)), wide.transpose(order))

    def _shared_tables(self, item: _Value, device: int, copied: int) -> Iterator[Costs]:
        """What it costs that a value is read on a device; ``copied``: the variable of the copy."""
        copies = np.array(
            [self.copies(item.size_bytes)[source][device] for source in self.devices(item.maker)],
            np.int64,
        )
        yield from _over(item.maker, copied, np.stack([0 * copies, copies], -1))
        for reader, label in self._asking(item, device):
            table = np.zeros((len(self.devices(reader)), 2), np.int64)
            table[label, 0] = FORBIDDEN
            yield from _over(reader, copied, table)

    def copies(self, size_bytes: int) -> Copies:
        """What one copy of so many bytes costs; nothing where they are already."""
        if size_bytes not in self.copies_of:
            devices = range(len(self.times))
            self.copies_of[size_bytes] = tuple(
                tuple(self._copy(size_bytes, source, destination) for destination in devices)
                for source in devices
            )
        return self.copies_of[size_bytes]

    def _copy(self, size_bytes: int, source: int, destination: int) -> int:
        if source == destination:
            return 0
        ends = self.times[source].costs, self.times[destination].costs
        return copy_picoseconds(size_bytes, *ends)

    def firsts(self) -> Iterator[tuple[int, ...]]:
        """All that can be on one device, for each device."""
        for device in range(len(self.names)):
            yield self._with_copies(
                [self._label(number, device) or 0 for number in range(len(self.units))]
            )

    def _with_copies(self, units: Sequence[int]) -> tuple[int, ...]:
        """Labels of units, and of the copies that these ask for."""

        def device_of(owner: int) -> int:
            return self.devices(owner)[units[owner] if owner >= 0 else 0]

        copied = (  # where the value is made there, the copy costs nothing
            any(device_of(each) == device for each in self.values[value].readers)
            for value, device in self.shared
        )
        return (*units, *map(int, copied))

    def choices(self, labels: Sequence[int]) -> Iterator[tuple[int, DeviceChoice]]:
        """Of each node that was left to us, in the order of the graph."""
        touching: list[list[_Value]] = [[] for _ in self.units]
        for item in self.values.values():
            for owner in sorted({item.maker, *item.readers}):
                if owner >= 0:
                    touching[owner].append(item)
        for number, unit in enumerate(self.units):
            picoseconds: list[int | None] = [None] * len(self.names)
            for label, device in enumerate(unit.devices):
                if unit.picoseconds[label] < FORBIDDEN:
                    moved = _Moved(self, labels, number, device)
                    picoseconds[device] = unit.picoseconds[label] + sum(
                        map(moved.copies, touching[number])
                    )
            yield unit.leader, DeviceChoice(unit.devices[labels[number]], tuple(picoseconds))


@dataclass(frozen=True, slots=True)
class _Moved:
    """All units where they are, but for one, which is on ``device``."""

    problem: _Problem
    labels: Sequence[int]
    unit: int
    device: int

    def copies(self, item: _Value) -> int:
        """What the copies of a value cost then."""
        costs = self.problem.copies(item.size_bytes)[self._device_of(item.maker)]
        return sum(
            [costs[device] for device in {self._device_of(reader) for reader in item.readers}]
        )

    def _device_of(self, owner: int) -> int:
        if owner == self.unit:
            return self.device
        return self.problem.devices(owner)[self.labels[owner] if owner >= 0 else 0]


def _units(item: _Value) -> set[int]:
    """The units that make or read a value."""
    return {owner for owner in (item.maker, *item.readers) if owner >= 0}


def _table_of_copies(copies: Copies, maker: Sequence[int], *readers: Sequence[int]) -> Table:
    """``[label of the maker, label of each reader]``: what is copied then, once for each device;
    ``maker``, ``readers``: the devices that the labels stand for."""
    table = np.zeros((len(maker), *map(len, readers)), np.int64)
    for at in product(*map(range, table.shape)):
        there = {devices[label] for devices, label in zip(readers, at[1:], strict=True)}
        table[at] = sum(copies[maker[at[0]]][device] for device in there)
    return table


def _fixed(device: int) -> int:
    """The owner that stands for a device where nothing is to be decided."""
    return -1 - device


def _over(first: int, second: int, table: npt.NDArray[np.int64]) -> Iterator[Costs]:
    """A table over two owners; one that is fixed has one label, and is left out."""
    if first < 0 and second < 0:
        return
    if first < 0 or second < 0:
        yield Costs((max(first, second),), table.reshape(-1))
    elif first < second:
        yield Costs((first, second), table)
    else:
        yield Costs((second, first), table.T)
