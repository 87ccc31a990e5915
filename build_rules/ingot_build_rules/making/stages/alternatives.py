"""Compiles the kernels of a library again for the other kinds that its devices may be.

In: the kernels of a library, the groups of all variants. Out: which loop program each kernel is of.
Not done here: compiling and linking (``compilation``), which device is taken (the loader).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.stages.target_stages import TargetStages
from ingot_build_rules.making.values.native_objects import KernelObject

if TYPE_CHECKING:
    from ingot_compiler.lowering.loops.program import LoopProgram


async def programs_of(
    kernels: Iterable[KernelObject], devices: Sequence[int], variants: Iterable[TargetStages]
) -> tuple[Artifact[LoopProgram], ...]:
    """The loop program that each of these kernels of some devices was first made from."""
    found: dict[str, Artifact[LoopProgram]] = {}
    for stages in variants:
        fused, compiled = await stages.fused(), await stages.compiled()
        for device, (lowered, own) in zip(fused.devices, compiled, strict=True):
            if device in devices:
                for kernel, program in zip(own, lowered.kernels, strict=True):
                    found.setdefault(kernel.symbol, program)
    return tuple(found[kernel.symbol] for kernel in kernels)
