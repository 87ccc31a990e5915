"""One host CPU target's part of a bundle.

In: stages 6 to 10 for one target. Out: ``Variant``. Not done here: making the stages (``compilation``), the
bundle (rule ``bundle``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
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

    def launched(self) -> tuple[str, ...]:
        """Return the symbol of the kernel of each launch."""
        return tuple(self.kernels[index].symbol for index in self.kernel_indices)

    def encoded_programs(self) -> dict[str, bytes]:
        """Return what each kernel was made from, by symbol, as ``loop_record`` reads it."""
        first = dict(zip(reversed(self.kernel_indices), reversed(self.programs), strict=True))
        return {kernel.symbol: first[index].encoded() for index, kernel in enumerate(self.kernels)}
