"""The hooks of ``opencl`` that hand on to what all back ends share, or to one function; those with
work of their own have modules: ``link_library``, ``read_target``.

In: a target, a group, a loop program. Out: what ``Backend`` says of each hook. Not done here: any of
the work, which each hook imports for itself (``code_digest``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup
    from ingot_compiler.lowering.loops.program import LoopProgram


def device_rules(target: str) -> DeviceRules:
    """Every op with loops that the host has."""
    from ingot_compiler.kernels.anchors import ANCHORS
    from ingot_compiler.kernels.machines import VECTOR_MACHINE
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules

    del target
    return DeviceRules(VECTOR_MACHINE, ANCHORS)


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    from ingot_compiler.backends.opencl.c_dims import ITEMS_MAX
    from ingot_compiler.kernels.lower_in_places import lower_in_places

    del target
    return lower_in_places(group, ITEMS_MAX)


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Return the kernel's symbol, which names its content, and its row for the loader with its
    text."""
    from ingot_compiler.backends.opencl.kernel_source import kernel_source

    del target
    made = kernel_source(program)
    return made.symbol, f"{made.row}\n{made.text}".encode()
