"""One target of a compilation in the order of a program: its stages 6 to 10, to be looked at.

In: a compilation, one of its targets. Out: ``TargetBuild``. Not done here: the chain of rules
(``target_stages``, ``compilation``), the stages that all targets share (``compile_model``).
"""

from __future__ import annotations

from functools import cached_property

from ingot_build_rules.making.rules.variant import Variant
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_build_rules.making.stages.target_stages import TargetStages
from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_compiler.lowering.groups.expand_groups import expand_groups
from ingot_compiler.lowering.groups.fused import FusedGraph, Launch, launches_of
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.memory.memory_plan import MemoryPlan


class TargetBuild:
    """Stages 6 to 10 of one compilation for one target."""

    def __init__(self, compilation: Compilation, stages: TargetStages) -> None:
        """Take one of the compilation's targets."""
        self.target = stages.target
        self._compilation = compilation
        self._stages = stages
        self._run = compilation.build.run

    @cached_property
    def fused(self) -> FusedGraph:
        """Stage 6; with ``--shape``, the specialisations beside the general version."""
        return self._run(self._stages.fused()).fused.value()

    @cached_property
    def expanded(self) -> FusedGraph:
        """Stage 6 with the launches of each group in its place."""
        return expand_groups(self.fused, [item.steps for item in self.lowered])

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of kernels, in order."""
        return launches_of(self.expanded)

    @cached_property
    def lowered(self) -> tuple[LoweredGroup, ...]:
        """Stage 7: what runs for each group, in the order of the groups."""
        made = self._run(self._stages.lowered())
        return tuple(
            LoweredGroup(item.steps, tuple(program.value() for program in item.programs))
            for item in made
        )

    @cached_property
    def programs(self) -> tuple[LoopProgram, ...]:
        """The programs of all groups, in order, as launches count them."""
        return tuple(program for item in self.lowered for program in item.programs)

    @cached_property
    def objects(self) -> tuple[KernelObject, ...]:
        """Stage 9 before linking: one per program; equal kernels are the same object."""
        return self._run(self._stages.kernel_uses()).kernels

    @cached_property
    def plan(self) -> MemoryPlan:
        """Stage 8."""
        return self._run(self._stages.plan()).value()

    @cached_property
    def variant(self) -> Variant:
        """Stage 10: the image and all that it was made from."""
        return self._run(self._compilation.variant(self._stages.position))
