"""A plug-in that wants nothing: every op falls back to the host.

In: nothing. Out: ``TARGET``. Not done here: anything.
"""

from __future__ import annotations

from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.plugins.claim import Offer, OpClaim
from ingot_compiler.plugins.plugin import Plugin
from ingot_compiler.plugins.settings import PluginSettings


def claim(_offer: Offer) -> list[OpClaim]:
    """Claim nothing."""
    return []


def lower(group: Group, _target: str, _settings: PluginSettings) -> LoweredGroup:
    """Never run: nothing is claimed."""
    raise NotImplementedError(group.kind)


TARGET = Plugin("decline", claim=claim, lower=lower)
