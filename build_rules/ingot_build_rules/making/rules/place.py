"""Rule ``place``: OptimizedGraph to PlacedGraph.

In: an optimized graph, the declared devices, what they run and cost. Out: ``PlacedGraph``. Not done
here: placement itself (``ingot_compiler.placement``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.options.option_rows import FORBID
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import RefuseOpFor
    from ingot_compiler.ir.graph import OptimizedGraph
    from ingot_compiler.placement.device_costs import DeviceCosts
    from ingot_compiler.placement.placed import PlacedGraph
    from ingot_compiler.placement.placing_rules import Fallback, RefuseOp
    from ingot_compiler.placement.virtual_device import DeclaredDevice


@dataclass(frozen=True, slots=True)
class PlaceInputs:
    """``devices`` in the order of the device table, the host first; ``hooks``
    (``Backend.refuse_op``) and ``targets``: one for each of them but the host. ``costs`` and
    ``shares`` (``Backend.product_share``): of all devices, where the user leaves nodes to us, else
    none."""

    optimized: Artifact[OptimizedGraph]
    devices: tuple[DeclaredDevice, ...]
    hooks: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    costs: tuple[DeviceCosts, ...] = ()
    shares: tuple[str, ...] = ()
    fallback: str = FORBID


def _compute(context: RuleContext, inputs: PlaceInputs) -> Artifact[PlacedGraph]:
    from ingot_compiler.placement import place as placement
    from ingot_compiler.placement.placing_rules import PlacingRules
    from ingot_compiler.placement.predicted_time import DeviceTimes

    refusals = [
        _refusal(context, hook, target)
        for hook, target in zip(inputs.hooks, inputs.targets, strict=True)
    ]
    shares = map(context.load, inputs.shares)
    times = tuple(map(DeviceTimes, inputs.costs, shares))
    rules = PlacingRules(refusals, times, cast("Fallback", inputs.fallback))
    return context.keep(placement.place(inputs.optimized.value(), inputs.devices, rules))


def _refusal(context: RuleContext, hook: str, target: str) -> RefuseOp:
    refuse: RefuseOpFor = context.load(hook)
    return lambda node, graph: refuse(node, graph, target)


PLACE = Rule(
    "place",
    1,
    ("optimized", "devices", "hooks", "targets", "costs", "shares", "fallback"),
    _compute,
    loads=("hooks", "shares"),
)
