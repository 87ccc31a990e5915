"""One host CPU target's part of a bundle, and how the bundle tells of it.

In: stages 6 to 10 for one target. Out: ``Variant``, its image as the writer wants it, its launches for reports.
Not done here: making the stages (``compile_model``), writing (``bundle``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_artifacts.bundle.contents import VariantImage
from ingot_build_rules.rules.codegen import KernelObject
from ingot_build_rules.rules.codegen_main import MainObject
from ingot_build_rules.rules.loop_record import record_program
from ingot_compiler.ir.graph import Names
from ingot_compiler.lowering.fused import FusedGraph, groups_of
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.plan_memory import MemoryPlan
from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class Variant:
    """``programs`` and ``kernel_indices``: one per group, in step order; ``kernels`` in the order of the image."""

    target: Target
    fused: FusedGraph
    programs: tuple[LoopProgram, ...]
    kernels: tuple[KernelObject, ...]
    kernel_indices: tuple[int, ...]
    plan: MemoryPlan
    main: MainObject
    image: bytes


def variant_image(variant: Variant, ranges: tuple[tuple[int, int], ...]) -> VariantImage:
    """Return the part that goes into the file; ``ranges``: (offset, bytes) of the weights that it reads."""
    sizes = [placement.size_bytes for placement in variant.plan.placements]
    return VariantImage(
        target=str(variant.target),
        features=variant.target.features,
        rank=variant.target.rank,
        image=variant.image,
        program=variant.main.program,
        weight_ranges=ranges,
        workspace_bytes=variant.plan.pool_bytes if all(isinstance(size, int) for size in sizes) else 0,
        kernels=tuple(kernel.symbol for kernel in variant.kernels),
    )


def describe_launches(variant: Variant, names: Names) -> list[object]:
    """Say for each launch which kernel runs which of the user's nodes on which shapes."""
    groups = groups_of(variant.fused)
    return [
        {
            "kernel": variant.kernels[index].symbol,
            "kind": group.kind,
            "nodes": [list(names.nodes[ordinal]) for ordinal in group.source],
            "reads": [str(operand.type) for operand in group.operands],
            "writes": [str(operand.type) for operand in group.results],
        }
        for group, index in zip(groups, variant.kernel_indices, strict=True)
    ]


def record_programs(variant: Variant) -> dict[str, object]:
    """Return what each kernel was made from, by symbol, as plain values."""
    first = dict(zip(reversed(variant.kernel_indices), reversed(variant.programs), strict=True))
    return {kernel.symbol: record_program(first[index]) for index, kernel in enumerate(variant.kernels)}
