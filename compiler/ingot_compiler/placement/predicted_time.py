"""How long ops, copies and whole placed graphs take by the table of costs.

In: work, devices, a placed graph. Out: picoseconds, so that sums are exact. Not done here: choosing
(``choose_devices``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.op_work import Work, bytes_of, setting_of, work_of
from ingot_compiler.placement.placed import PlacedGraph

PICOSECONDS = 10**12


def work_picoseconds(work: Work, costs: DeviceCosts) -> int:
    """How long one op takes on a device: for computing or for its values, whichever is longer, then
    for the weights that come from further away than its cache, and for launches."""
    computing = (
        work.contraction_flops / costs.contraction_flops_per_second
        + work.flops / costs.flops_per_second
    )
    moving = work.size_bytes / costs.bytes_per_second
    uncached_bytes = max(0, work.constant_bytes - costs.cache_bytes)
    weights = uncached_bytes / costs.constant_bytes_per_second
    launches = work.launch_count * costs.launch_seconds
    return round((max(computing, moving) + weights + launches) * PICOSECONDS)


def copy_picoseconds(size_bytes: int, source: DeviceCosts, destination: DeviceCosts) -> int:
    """How long a copy between two devices takes."""
    ends = (source, destination)
    seconds = sum(end.copy_seconds + size_bytes / end.copy_bytes_per_second for end in ends)
    return round(seconds * PICOSECONDS)


def predicted_picoseconds(placed: PlacedGraph, costs: Sequence[DeviceCosts]) -> int:
    """How long one call takes if nothing overlaps; ``costs``: in the order of the devices."""
    graph, device_of = placed.graph, placed.device_of
    setting, total = setting_of(graph), 0
    for node in graph.nodes:
        device = device_of[node.results[0]] if node.results else 0
        if node.op == "copy" and not setting.constants.issuperset(node.results):
            (operand,) = node.operands
            ends = costs[device_of[operand]], costs[device]
            total += copy_picoseconds(bytes_of(graph.types[operand]), *ends)
        else:
            total += work_picoseconds(work_of(node, setting), costs[device])
    return total
