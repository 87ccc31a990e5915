"""``auto``: which device each node runs on that the user leaves to us, so that a call is predicted
to take the least time.

In: a graph with marks, how long each device takes, what each of them runs. Out: the device of each
such node, and what the other ones would have cost. Not done here: what is decided together
(``placing_units``), copies (``place`` writes them), the search (``least_cost``).

A unit costs its work on its device, as often as it runs. A value costs one copy for each other
device that reads it, however many nodes read it there: where the host reads it, as often as it is
made; where another device reads it inside of control flow, as seldom as that can be
(``copies_ahead``). (decision 23)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.graph import Graph
from ingot_compiler.placement.how_often import times_over
from ingot_compiler.placement.least_cost import FORBIDDEN, Costs, Table, least_cost
from ingot_compiler.placement.placing_units import Path, PlacingUnits, PlacingValue, Refuses
from ingot_compiler.placement.predicted_time import DeviceTimes, copy_picoseconds
from ingot_runtime.lazy_dataclass import dataclass

_JOINT_UNITS_MAX = 4
"""The copies of a value that more units touch are variables, so that tables stay small."""
Copies = tuple[tuple[int, ...], ...]
"""``[source][destination]``: picoseconds of a copy."""
_Devices = tuple[int, ...]
_Touching = tuple[int, int, _Devices, tuple[tuple[_Devices, int], ...]]
"""Bytes of a value, its region, where its maker may be, where each reader may be and its region."""
_Read = tuple[int, int]
"""A device on which a value is read, and the region whose copy that is."""


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """``device``: a number in the table; ``picoseconds``: what the node, those that follow it and
    the copies around them take on each device, all else being where it is; None where they cannot
    run."""

    device: int
    picoseconds: tuple[int | None, ...]


def choose_devices(
    graph: Graph, names: Sequence[str], times: Sequence[DeviceTimes], refuses: Refuses
) -> Mapping[Path, DeviceChoice]:
    """Choose for each node that is marked ``auto``, by its path; ``names`` and ``times``: of the
    devices, the host first."""
    units = PlacingUnits(names, times, refuses)
    units.read(graph)
    problem = _Problem(units)
    problem.share()
    label_counts = [len(unit.devices) for unit in units.units] + [2] * len(problem.shared)
    labels = least_cost(label_counts, problem.tables(), problem.firsts())
    return dict(problem.choices(labels))


@dataclass(slots=True)
class _Problem:
    """The costs of units and values as tables; one use. ``touched``: each value with the units that
    make or read it. ``shared``: value, device and region, for each value of many units, wherever it
    may be wanted: a variable that says whether it is there. ``joint``, ``copies_of``: the tables and costs of copies
    that are known, by all that they depend on."""

    read: PlacingUnits
    touched: list[tuple[PlacingValue, list[int]]] = field(
        default_factory=list[tuple[PlacingValue, list[int]]]
    )
    shared: list[tuple[PlacingValue, _Read]] = field(
        default_factory=list[tuple[PlacingValue, _Read]]
    )
    joint: dict[_Touching, Table] = field(default_factory=dict[_Touching, Table])
    copies_of: dict[int, Copies] = field(default_factory=dict[int, Copies])

    def share(self) -> None:
        """Where a value with many readers is, each place is a variable of its own."""
        self.touched = [(item, item.units()) for item in self.read.values]
        for item, units in self.touched:
            if len(units) > _JOINT_UNITS_MAX:
                for device in range(len(self.read.names)):
                    found = {
                        up
                        for _, _, region in self._readers(item, device)
                        for up in self.read.up_to(item.home, region)
                    }
                    self.shared += [(item, (device, region)) for region in sorted(found)]

    def _readers(self, item: PlacingValue, device: int) -> Iterator[tuple[int, int, int]]:
        """Who may read a value on a device: the owner, the label that says so, and the region where
        it must be there, for the host the one that makes it."""
        for region, owners in sorted(item.readers.items()):
            for owner in sorted(owners - {item.maker}):
                label = self._label(owner, device)
                if label is not None:
                    yield owner, label, region if device else item.home

    def _label(self, owner: int, device: int) -> int | None:
        """The label by which an owner is on a device; None where it cannot be there."""
        devices = self.read.devices(owner)
        return devices.index(device) if device in devices else None

    def tables(self) -> list[Costs]:
        """Every cost: of units, of copies."""
        found = [
            Costs((number,), np.array(unit.picoseconds, np.int64))
            for number, unit in enumerate(self.read.units)
        ]
        there: dict[int, dict[_Read, int]] = {}
        for number, (item, copy) in enumerate(self.shared, len(self.read.units)):
            numbers = there.setdefault(id(item), {})
            numbers[copy] = number
            found += self._shared_table(item, copy, numbers)
        for item, units in self.touched:
            if len(units) > _JOINT_UNITS_MAX:
                found += self._reading_tables(item, there.get(id(item), {}))
            elif units:
                found += self._joint_table(item)
        return found

    def _joint_table(self, item: PlacingValue) -> Iterator[Costs]:
        """What all copies of a value cost, by where it is made and by where each reader is."""
        readers = [
            (owner, region)
            for region, owners in sorted(item.readers.items())
            for owner in sorted(owners)
            if owner != item.maker
        ]
        maker, devices_of = self.read.devices(item.maker), self.read.devices
        requested = tuple((devices_of(owner), region) for owner, region in readers)
        kind = item.size_bytes, item.home, maker, requested
        if kind not in self.joint:
            self.joint[kind] = self._table_of_copies(item, maker, requested)
        if self.joint[kind].any():
            yield from _over((item.maker, *(owner for owner, _ in readers)), self.joint[kind])

    def _table_of_copies(
        self, item: PlacingValue, maker: _Devices, readers: Sequence[tuple[_Devices, int]]
    ) -> Table:
        """``[label of the maker, label of each reader]``: what is copied then; ``maker``,
        ``readers``: the devices that the labels stand for."""
        table = np.zeros((len(maker), *(len(devices) for devices, _ in readers)), np.int64)
        for at in product(*map(range, table.shape)):
            placed = zip(readers, at[1:], strict=True)
            there = [(devices[label], region) for (devices, region), label in placed]
            table[at] = self.copied(item, maker[at[0]], there)
        return table

    def copied(self, item: PlacingValue, source: int, readers: Sequence[_Read]) -> int:
        """What the copies of a value take in a call; ``readers``: device and region of each."""
        return sum([self._made(item, source, copy) for copy in self._needed(item, readers)])

    def _needed(self, item: PlacingValue, readers: Iterable[_Read]) -> list[_Read]:
        """The copies that are made for these readers."""
        regions: dict[int, set[int]] = {}
        for device, region in readers:
            regions.setdefault(device, set()).add(region if device else item.home)
        return [
            (device, region)
            for device, read in regions.items()
            for region in self.read.copied_in(item.home, read)
        ]

    def _made(self, item: PlacingValue, source: int, copy: _Read) -> int:
        """What one copy takes in a call."""
        device, region = copy
        return times_over(self._copies(item.size_bytes)[source][device], self.read.often[region])

    def copied_outside(self, item: PlacingValue, source: int, devices: Iterable[int]) -> int:
        """What the copies of a value take in a call, where all that read it, on these devices, are
        outside of control flow."""
        costs = self._copies(item.size_bytes)[source]
        return sum([costs[device] for device in set(devices)])

    def _shared_table(
        self, item: PlacingValue, copy: _Read, there: Mapping[_Read, int]
    ) -> Iterator[Costs]:
        """What it costs that a value is on a device in a region: nothing where it is in the region
        around. ``there``: the variables of the value, up to that of this copy."""
        device, region = copy
        sources = self.read.devices(item.maker)
        copies = np.array([self._made(item, source, copy) for source in sources], np.int64)
        made = np.stack([0 * copies, copies], -1)
        if region == item.home:
            yield from _over((item.maker, there[copy]), made)
        else:
            around = there[device, self.read.around[region]]
            yield from _over((item.maker, there[copy], around), np.stack([made, 0 * made], -1))

    def _reading_tables(self, item: PlacingValue, there: Mapping[_Read, int]) -> Iterator[Costs]:
        """That whoever reads a value on a device finds it there."""
        for device in range(len(self.read.names)):
            for reader, label, region in self._readers(item, device):
                table = np.zeros((len(self.read.devices(reader)), 2), np.int64)
                table[label, 0] = FORBIDDEN
                yield from _over((reader, there[device, region]), table)

    def _copies(self, size_bytes: int) -> Copies:
        """What one copy of so many bytes costs; nothing where they are already."""
        if size_bytes not in self.copies_of:
            devices = range(len(self.read.times))
            self.copies_of[size_bytes] = tuple(
                tuple(self._copy(size_bytes, source, destination) for destination in devices)
                for source in devices
            )
        return self.copies_of[size_bytes]

    def _copy(self, size_bytes: int, source: int, destination: int) -> int:
        if source == destination:
            return 0
        ends = self.read.times[source].costs, self.read.times[destination].costs
        return copy_picoseconds(size_bytes, *ends)

    def firsts(self) -> Iterator[tuple[int, ...]]:
        """All that can be on one device, for each device."""
        for device in range(len(self.read.names)):
            yield self._with_copies(
                [self._label(number, device) or 0 for number in range(len(self.read.units))]
            )

    def _with_copies(self, units: Sequence[int]) -> tuple[int, ...]:
        """Labels of units, and where the values that these ask for are then."""
        moved, needed = _Moved(self, units), dict[int, list[_Read]]()
        there: dict[tuple[int, _Read], bool] = {}
        for item, (device, region) in self.shared:
            if id(item) not in needed:
                needed[id(item)] = self._needed(item, moved.readers(item))
            around = id(item), (device, self.read.around[region])
            # Where the value is made there, the copy costs nothing.
            is_made = (device, region) in needed[id(item)]
            there[id(item), (device, region)] = is_made or there.get(around, False)
        return (*units, *map(int, there.values()))

    def choices(self, labels: Sequence[int]) -> Iterator[tuple[Path, DeviceChoice]]:
        """The choice for each node whose device was left open, in the order of the graph."""
        touching: list[list[PlacingValue]] = [[] for _ in self.read.units]
        for item, units in self.touched:
            for owner in units:
                touching[owner].append(item)
        for number, unit in enumerate(self.read.units):
            picoseconds: list[int | None] = [None] * len(self.read.names)
            for label, device in enumerate(unit.devices):
                if unit.picoseconds[label] < FORBIDDEN:
                    moved = _Moved(self, labels, number, device)
                    picoseconds[device] = unit.picoseconds[label] + sum(
                        map(moved.copies, touching[number])
                    )
            yield unit.leader, DeviceChoice(unit.devices[labels[number]], tuple(picoseconds))


@dataclass(frozen=True, slots=True)
class _Moved:
    """All units where they are, but for one, if any, which is on ``device``."""

    problem: _Problem
    labels: Sequence[int]
    unit: int = -1
    device: int = 0

    def copies(self, item: PlacingValue) -> int:
        """What the copies of a value cost then."""
        source = self.device_of(item.maker)
        if list(item.readers) == [0]:  # no control flow: most values of a large network
            return self.problem.copied_outside(item, source, map(self.device_of, item.readers[0]))
        return self.problem.copied(item, source, self.readers(item))

    def readers(self, item: PlacingValue) -> list[_Read]:
        """Where a value is read."""
        return [
            (self.device_of(reader), region)
            for region, owners in item.readers.items()
            for reader in owners
        ]

    def device_of(self, owner: int) -> int:
        """Where an owner is."""
        if owner >= 0 and owner == self.unit:
            return self.device
        return self.problem.read.devices(owner)[self.labels[owner] if owner >= 0 else 0]


def _over(owners: Sequence[int], table: npt.NDArray[np.int64]) -> Iterator[Costs]:
    """A table over owners; one that is fixed has one label, and is left out."""
    free = [owner for owner in owners if owner >= 0]
    if free:
        sizes = [size for owner, size in zip(owners, table.shape, strict=True) if owner >= 0]
        order = sorted(range(len(free)), key=free.__getitem__)
        yield Costs(tuple(sorted(free)), table.reshape(sizes).transpose(order))
