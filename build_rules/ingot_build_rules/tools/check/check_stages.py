"""The verifiers of all stages, run on one compilation.

In: a compilation. Out: nothing, or ``InternalError`` that names stage, part and rule. Not done
here: the rules (``verify_*`` of each stage), what the bundle computes (``self_check``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_compiler.frontend.model.verify_imported import verify_imported
from ingot_compiler.host_program.parse_program import parse_program
from ingot_compiler.host_program.verify_program import ProgramContext, verify_program
from ingot_compiler.ir.verify import verify
from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.lowering.groups.fused import groups_of
from ingot_compiler.lowering.groups.verify_fused import verify_fused
from ingot_compiler.lowering.groups.verify_lowered import verify_lowered
from ingot_compiler.lowering.loops.verify_loops import verify_loops
from ingot_compiler.memory.verify_memory import verify_memory
from ingot_compiler.placement.verify_placed import verify_placed

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.stages.target_build import TargetBuild


def check_stages(compiled: CompiledModel) -> None:
    """Verify every stage of every target.

    Raises:
        InternalError: a rule is broken; the compiler is at fault.
    """
    verify_imported(compiled.imported)
    verify(compiled.graph)
    verify(compiled.optimized.graph)
    verify_placed(compiled.placed)
    for specialisation in compiled.specialisations:
        verify_placed(specialisation)
    for build in compiled.target_builds:
        _check_target(compiled, build)


def _check_target(compiled: CompiledModel, build: TargetBuild) -> None:
    fused, expanded = build.fused, build.expanded
    verify_fused(fused, KINDS)
    verify_fused(expanded, KINDS)
    for group, lowered in zip(groups_of(fused), build.lowered, strict=True):
        verify_lowered(lowered, group, fused.buffers)
    for launch in build.launches:
        counts = [expanded.buffers[buffer].element_count for buffer in launch.buffers]
        verify_loops(build.programs[launch.program], counts)
    verify_memory(build.plan, expanded)
    variant = build.variant
    ranks = [
        tuple(len(tensor_type.shape) for tensor_type in types)
        for types in (fused.inputs, fused.outputs)
    ]
    kernels = (len(variant.kernels), *compiled.kernel_counts)
    verify_program(
        parse_program(variant.main.listing.value()), ProgramContext(ranks[0], ranks[1], kernels)
    )
