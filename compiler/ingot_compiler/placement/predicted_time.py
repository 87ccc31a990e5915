"""How long ops, copies and whole placed graphs take by the table of costs.

In: nodes, devices, a placed graph. Out: picoseconds, so that sums are exact. Not done here: choosing
(``choose_devices``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.op_work import Setting, Work, bytes_of, setting_of, work_of
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
    graph, device_of = placed.graph, placed.device_of
    setting, total = setting_of(graph), 0
    for node in graph.nodes:
        device = device_of[node.results[0]] if node.results else 0
        if node.op == "copy" and not setting.constants.issuperset(node.results):
            (operand,) = node.operands
            ends = times[device_of[operand]].costs, times[device].costs
            total += copy_picoseconds(bytes_of(graph.types[operand]), *ends)
        else:
            total += times[device].of_node(node, setting)
    return total
