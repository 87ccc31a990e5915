"""Which values are copied ahead of control flow, since nodes inside of it read them on a device.

In: a graph of which it is known where all nodes run, those inside too. Out: values with the devices
to which they are copied. Not done here: writing copies (``place``, ``place_region``), what they
cost (``choose_devices``, by the same rule).

A copy is made where it is made least often, the further outside the better: what a body reads is
copied ahead of its loop, what one branch reads in that branch, what both read ahead of them. What
is read outside as well is copied outside, once. What is made of nothing is never copied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from ingot_compiler.ir.graph import Graph, Node, captured
from ingot_compiler.placement.control import is_control, is_made_of_nothing
from ingot_compiler.placement.how_often import how_often
from ingot_compiler.placement.op_work import Setting, settings_inside
from ingot_runtime.lazy_dataclass import dataclass

DeviceOfNode = Callable[[Node, Graph], int]
"""(node, its graph) -> the index of the device that runs it."""
ReadOn = tuple[int, int]
"""A value, and the device on which it is read."""


@dataclass(frozen=True, slots=True)
class CopiesAhead:
    """``runs_on``: of any node, inside and outside."""

    runs_on: DeviceOfNode

    def of(self, setting: Setting) -> frozenset[ReadOn]:
        """What is copied in a graph itself, if it is there on no other way."""
        return frozenset(read for read, count in self._counts(setting).items() if count >= 1)

    def before(self, node: Node, setting: Setting) -> Mapping[ReadOn, float]:
        """What is read inside of a node of control flow, and how often that would be copied inside
        for each time that the node runs."""
        counts: dict[ReadOn, float] = defaultdict(float)
        visible = captured(node)
        inside = settings_inside(node, setting)
        for region, often in zip(inside, how_often(node, setting, 1.0), strict=True):
            for read, count in self._counts(region).items():
                if read[0] in visible:
                    counts[read] += often * min(count, 1.0)
        return counts

    def _counts(self, setting: Setting) -> Mapping[ReadOn, float]:
        counts: dict[ReadOn, float] = defaultdict(float)
        for node in setting.graph.nodes:
            if is_control(node):
                for read, count in self.before(node, setting).items():
                    counts[read] += count
            elif device := self.runs_on(node, setting.graph):
                counts.update({(value, device): 1.0 for value in node.operands})
        return {read: counts[read] for read in counts if not _is_made(read[0], setting)}


def _is_made(value: int, setting: Setting) -> bool:
    maker = setting.makers.get(value)
    return maker is not None and is_made_of_nothing(maker)
