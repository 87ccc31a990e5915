"""The launches of one group, and the loops of its kernels.

In: nothing. Out: ``Lowered``. Not done here: making it (``lower``, ``lower_claimed``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.lowering.loops.program import LoopProgram


@dataclass(frozen=True, slots=True)
class Lowered:
    """``steps``: launches of ``programs``; ``kernels``: these as their kernels see them
    (``keep_lowered``), each an artifact of its own, so that equal kernels are compiled once."""

    steps: GroupSteps
    programs: tuple[Artifact[LoopProgram], ...]
    kernels: tuple[Artifact[LoopProgram], ...]
