"""Writes zeros, or a zero point, into the halo of a buffer, so that convolutions need no edges.

In: a group whose node has the attributes ``before`` and ``after`` (elements per axis of the
result) and ``value``. Out: its loop program. Not done here: the interior. The padded axes are axes
2 and up of an image, channels-last or row-major.
"""

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.guards import all_of, is_within
from ingot_compiler.lowering.groups.views import flat_index
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant
from ingot_compiler.lowering.loops.program import For, If, LoopProgram, Store


def lower_fill_halo(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are the stored rows: a row outside the interior is filled whole, others at both
    ends."""
    del target
    result = group.results[0]
    before, after = (group.nodes[0].dims(name) for name in ("before", "after"))
    shape = result.type.shape
    padded = tuple(size + before[axis] + after[axis] for axis, size in enumerate(shape))
    pitch = result.view.strides[-1]
    outer_axes = (0, *range(2, len(shape) - 1)) if pitch == shape[1] else range(len(shape) - 1)
    assert pitch in (shape[1], 1)
    outer = tuple(padded[axis] for axis in outer_axes)
    row = dim_mul(symbol("p"), dim_mul(padded[-1], pitch))
    buffers = GroupBuffers(group)
    value = group.nodes[0].integer("value")
    fill_value = Constant(False if result.type.dtype == "bool" else value, result.type.dtype)
    inside = all_of(
        is_within(
            before[axis], flat_index(symbol("p"), outer, position), before[axis] + shape[axis]
        )
        for position, axis in enumerate(outer_axes)
        if before[axis] != 0 or after[axis] != 0
    )

    def fill(start: Dim, count: Dim) -> For:
        store = Store(buffers.number(result), row + start + symbol("j"), fill_value)
        return For("j", count, "vector", (store,))

    ends = (fill(0, before[-1] * pitch), fill((before[-1] + shape[-1]) * pitch, after[-1] * pitch))
    outside = Apply("logical_not", (inside,), "bool")
    body = (If(inside, ends), If(outside, (fill(0, padded[-1] * pitch),)))
    grain = grain_for(dim_mul(padded[-1], pitch) // 8)
    return finish_program(buffers, body, dim_product(outer), grain)


FILL_HALO = Kind("fill_halo", one_kernel(lower_fill_halo))
