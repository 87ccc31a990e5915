"""Products of f32 as products of parts of bf16: three launches.

In: a group anchored by a product of parts, its matrix view. Out: its loop programs. Not done here:
the loops of each (``float_parts``, ``contraction``).
"""

from ingot_compiler.kernels.anchored_group import AnchoredGroup
from ingot_compiler.kernels.products.contraction import Product, contraction_program
from ingot_compiler.kernels.products.float_parts import (
    FloatParts,
    guard_program,
    part_program,
    span_of,
    with_parts,
)
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn


def lower_parts(group: Group, target: KernelTarget, product: Product) -> LoweredGroup:
    """Split A, decide whether products of parts are near enough, multiply."""
    anchored = AnchoredGroup(group)
    extents = dict(product.taps) | {"g": product.outer, "row": product.rows, "k": product.depth}
    first, count = span_of(product.a_index, extents)
    *weights, greatest = (anchored.operand(at) for at in range(-anchored.method.parts, 0))
    parts = FloatParts(anchored.operand(0), first, count, tuple(weights), greatest)
    groups = with_parts(group, parts)
    split, decide, multiply = groups
    programs = (
        part_program(split, parts),
        guard_program(decide, parts),
        contraction_program(AnchoredGroup(multiply), target, product, parts),
    )
    return launches_in_turn(group, groups, programs, *parts.workspace)
