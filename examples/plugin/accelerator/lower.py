"""What runs for a claim: one call of a function of the library.

In: a claimed group. Out: ``LoweredGroup``. Not done here: the functions (``kernels.c``).
"""

from __future__ import annotations

from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.plugins.extern_call import extern_call
from ingot_compiler.plugins.settings import PluginSettings


def lower(group: Group, _target: str, _settings: PluginSettings) -> LoweredGroup:
    """Call the function of the claim's name with operands, result, and how many elements."""
    return extern_call(group, f"accelerator_{group.kind}", [group.results[0].type.element_count])
