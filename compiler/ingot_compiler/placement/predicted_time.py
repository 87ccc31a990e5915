"""How long ops, copies and whole placed graphs take by the table of costs.

In: nodes, devices, a placed graph. Out: picoseconds, so that sums are exact. Not done here:
choosing (``choose_devices``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.placement.control import devices_inside, is_control
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.how_often import how_often, times_over
from ingot_compiler.placement.op_work import (
    Setting,
    Work,
    bytes_of,
    setting_of,
    settings_inside,
    work_of,
)
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.lazy_dataclass import dataclass

PICOSECONDS = 10**12
ProductShare = Callable[[Node, Setting], float]
"""(node, what its work depends on) -> the share of its products that a device really makes."""


def all_products(_node: Node, _setting: Setting) -> float:
    """The hook ``product_share`` of a back end that multiplies as ops say."""
    return 1.0


@dataclass(frozen=True, slots=True)
class DeviceTimes:
    """How long one device takes: its rates, and what its kernels make of products."""

    costs: DeviceCosts
    product_share: ProductShare = all_products

    def of_node(self, node: Node, setting: Setting) -> int:
        """How long a node takes."""
        return self.of_work(work_of(node, setting), node, setting)

    def of_work(self, work: Work, node: Node, setting: Setting) -> int:
        """How long the work of a node takes."""
        if work.contraction_flops:
            flops = round(work.contraction_flops * self.product_share(node, setting))
            work = replace(work, contraction_flops=flops)
        return work_picoseconds(work, self.costs)


def work_picoseconds(work: Work, costs: DeviceCosts) -> int:
    """How long one op takes on a device: for computing or for its values, whichever is longer, then
    for the weights that come from further away than its cache, and for launches."""
    computing = (
        work.contraction_flops / costs.contraction_flops_per_second
        + work.flops / costs.flops_per_second
    )
    moving = work.size_bytes / costs.bytes_per_second
    uncached = max(0, work.constant_bytes - costs.cache_bytes) / max(1, work.constant_bytes)
    weights = uncached * work.passed_bytes / costs.constant_bytes_per_second
    launches = work.launch_count * costs.launch_seconds
    return round((max(computing, moving) + weights + launches) * PICOSECONDS)


def copy_picoseconds(size_bytes: int, source: DeviceCosts, destination: DeviceCosts) -> int:
    """How long a copy between two devices takes."""
    ends = (source, destination)
    seconds = sum(end.copy_seconds + size_bytes / end.copy_bytes_per_second for end in ends)
    return round(seconds * PICOSECONDS)


def predicted_picoseconds(placed: PlacedGraph, times: Sequence[DeviceTimes]) -> int:
    """How long one call takes if nothing overlaps; ``times``: in the order of the devices."""
    names = [device.name for device in placed.devices]
    return _picoseconds(setting_of(placed.graph), placed.device_of, names, times, 1.0)


def _picoseconds(
    setting: Setting,
    device_of: Sequence[int],
    names: Sequence[str],
    times: Sequence[DeviceTimes],
    often: float,
) -> int:
    """How long a graph takes that runs so often, with what is inside of control flow."""
    graph, total = setting.graph, 0
    for node in graph.nodes:
        device = device_of[node.results[0]] if node.results else 0
        if is_control(node):
            inside = zip(
                settings_inside(node, setting), how_often(node, setting, often), strict=True
            )
            for region, each in inside:
                devices = devices_inside(region.graph, device_of, names)
                total += _picoseconds(region, devices, names, times, each)
        elif node.op == "copy" and not setting.constants.issuperset(node.results):
            (operand,) = node.operands
            ends = times[device_of[operand]].costs, times[device].costs
            total += times_over(copy_picoseconds(bytes_of(graph.types[operand]), *ends), often)
        else:
            total += times_over(times[device].of_node(node, setting), often)
    return total
