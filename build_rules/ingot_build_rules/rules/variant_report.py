"""How a bundle tells of one variant: its image as the writer wants it, its launches, what its kernels were made from.

In: a ``Variant``, names. Out: plain values. Not done here: making the stages (``compilation``), writing (``bundle_contents``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_artifacts.bundle.contents import VariantImage
from ingot_build_rules.rules.variant import Variant
from ingot_compiler.frontend.name_nodes import name_text
from ingot_compiler.ir.graph import Names
from ingot_compiler.lowering.fused import groups_of


def variant_image(variant: Variant, ranges: tuple[tuple[int, int], ...]) -> VariantImage:
    """Return the part that goes into the file; ``ranges``: (offset, bytes) of the weights that it reads."""
    plan = variant.plan.value()
    sizes = [placement.size_bytes for placement in plan.placements]
    return VariantImage(
        target=str(variant.target),
        features=variant.target.features,
        rank=variant.target.rank,
        image=bytes(variant.image.value()),
        program=bytes(variant.main.program.value()),
        weight_ranges=ranges,
        workspace_bytes=(plan.pool_bytes if all(isinstance(size, int) for size in sizes) else 0,),
        kernels=tuple(kernel.symbol for kernel in variant.kernels),
    )


def describe_launches(variant: Variant, names: Names) -> list[object]:
    """Say for each launch which kernel runs which of the user's nodes on which shapes."""
    groups = groups_of(variant.fused.value())
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


def name_messages(variants: Sequence[Variant], names: Names) -> dict[str, object]:
    """Return what the programs may say, each text with the same in the user's names."""
    texts = sorted({text for variant in variants for text in variant.main.messages})
    return {text: name_text(text, names) for text in texts if name_text(text, names) != text}


def record_programs(variant: Variant) -> dict[str, bytes]:
    """Return what each kernel was made from, by symbol, as ``loop_record`` reads it."""
    first = dict(zip(reversed(variant.kernel_indices), reversed(variant.programs), strict=True))
    return {kernel.symbol: first[index].encoded() for index, kernel in enumerate(variant.kernels)}
