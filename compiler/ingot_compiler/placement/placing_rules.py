"""The inputs of placement beside the graph: what devices run, what they cost, what happens to a
node that its device does not run.

In: nothing. Out: ``PlacingRules``. Not done here: placement (``place``), how long a
device takes (``predicted_time``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import Text
from ingot_compiler.placement.predicted_time import DeviceTimes
from ingot_runtime.lazy_dataclass import dataclass

Fallback = Literal["forbid", "warn", "allow"]
"""``forbid``: the model is refused; ``warn``, ``allow``: the node runs on the host, and the user is
told or not."""
RefuseOp = Callable[[Node, Graph], Text]
"""(node, its graph) -> why a device has no code for it, and what it runs; "" where it has."""
_CONTROL = "control flow runs on the host; nodes inside of it are placed by their own names"


@dataclass(frozen=True, slots=True)
class PlacingRules:
    """``refusals``: of each device but the host, in the order of the table; none: they run all that
    the host runs. ``times``: of all devices; needed where a node is marked ``auto``."""

    refusals: Sequence[RefuseOp] = ()
    times: Sequence[DeviceTimes] = ()
    fallback: Fallback = "forbid"

    def refusal(self, node: Node, graph: Graph, device: int) -> Text:
        """Why a node cannot run on a device, "" where it can."""
        if device == 0:
            return ""
        if node.regions:
            return _CONTROL
        return self.refusals[device - 1](node, graph) if self.refusals else ""


def refuse_nothing(_node: Node, _graph: Graph, _target: str) -> Text:
    """The hook ``refuse_op`` of a back end that has code for all that the host has code for."""
    return ""
