"""One host CPU target's part of a bundle, and the code of other devices.

In: stages 6 to 10 for one target. Out: ``Variant``, ``Library``, ``Alternative``. Not done here:
making the stages (``compilation``), the bundle (rule ``bundle``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.values.native_objects import KernelObject, MainObject
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import FusedGraph
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan


@dataclass(frozen=True, slots=True)
class Variant:
    """``steps``: of each group; ``programs`` and ``symbols`` (of their kernels): those of all
    groups, in order; ``kernels`` in the order of the image; ``features``, ``rank``: of the target;
    ``processors``: the beginnings of the models for which a loader takes it, none: all."""

    target: str
    features: tuple[str, ...]
    rank: int
    fused: Artifact[FusedGraph]
    steps: tuple[GroupSteps, ...]
    programs: tuple[Artifact[LoopProgram], ...]
    symbols: tuple[str, ...]
    kernels: tuple[KernelObject, ...]
    plan: Artifact[MemoryPlan]
    main: MainObject
    image: Artifact[memoryview]
    processors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """The code of one kind of device for one target, shared by its devices; ``kernels`` in the
    order of the image."""

    kind: str
    target: str
    features: tuple[str, ...]
    kernels: tuple[KernelObject, ...]
    image: Artifact[memoryview]


@dataclass(frozen=True, slots=True)
class Alternative:
    """The kernels of a library, compiled for another kind of device or target; ``stands_for``: the
    number of that library; ``ids``: (device, which one of its kind)."""

    library: Library
    stands_for: int
    ids: tuple[tuple[int, int], ...]
