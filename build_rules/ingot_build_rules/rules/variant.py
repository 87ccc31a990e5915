"""One host CPU target's part of a bundle.

In: stages 6 to 10 for one target. Out: ``Variant``. Not done here: making the stages (``compilation``), reports
(``variant_report``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.artifact import Artifact
from ingot_build_rules.rules.kernel_object import KernelObject
from ingot_build_rules.rules.main_object import MainObject

if TYPE_CHECKING:
    from ingot_compiler.lowering.fused import FusedGraph
    from ingot_compiler.lowering.loops import LoopProgram
    from ingot_compiler.lowering.memory_plan import MemoryPlan
    from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class Variant:
    """``programs`` and ``kernel_indices``: one per group, in step order; ``kernels`` in the order of the image."""

    target: Target
    fused: Artifact[FusedGraph]
    programs: tuple[Artifact[LoopProgram], ...]
    kernels: tuple[KernelObject, ...]
    kernel_indices: tuple[int, ...]
    plan: Artifact[MemoryPlan]
    main: MainObject
    image: Artifact[memoryview]
