"""Kernels whose elements are independent: elementwise chains, gathers, pads, copies between
layouts.

In: a group without anchor. Out: its loop program. Not done here: operands that lie along other axes
than the result (``transposed_plane``), columns of rows (``gathered_columns``), reductions and contractions (their own kinds).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import storage_order
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.before_loop import before_loop
from ingot_compiler.lowering.kinds.gathered_columns import (
    find_gathered_columns,
    lower_gathered_columns,
)
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.merged_axes import merged_axes
from ingot_compiler.lowering.kinds.padded_axis import PaddedAxis, padded_axis
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.run_views import has_picked, run_views
from ingot_compiler.lowering.kinds.split_repeats import split_repeats
from ingot_compiler.lowering.kinds.touched_views import are_one_run
from ingot_compiler.lowering.kinds.transposed_plane import (
    find_plane,
    lower_plane,
    narrow_plane,
)
from ingot_compiler.lowering.loops.program import For, LoopProgram, Statement
from ingot_runtime.lazy_dataclass import dataclass

BLOCK_ELEMENTS = 2048  # a unit of a tensor that is one long run: 8 KB of f32
_BLOCK_MIN, _BLOCK_MAX, _BLOCK_STEP = 1024, 49 * 64, 64  # images have sides of 7, 14, 28, ..
_IMAGE_AXES = 2
SHORT_AXIS = 8  # an innermost axis below this wastes lanes; look for a longer one


@dataclass(frozen=True, slots=True)
class _Loops:
    """Axes of the outer, flat loop and of the vector loop, outermost first."""

    outer: tuple[int, ...]
    inner: tuple[int, ...]


def lower_pointwise(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel, or two where short rows are repeated, or one for each form that the group has for
    some sizes."""

    def lower(part: Group) -> LoopProgram:
        return lower_elements(part, target)

    general = split_repeats(group, lower) or _with_few(group, one_launch(lower(group)), target)
    for count in _merged_counts(group.results[0].type.rank):
        if (merged := merged_axes(group, count)) is not None:
            general = choose(merged.condition, one_launch(lower(merged.group)), general)
    return general


def _with_few(group: Group, general: LoweredGroup, target: KernelTarget) -> LoweredGroup:
    """A plane that a run may find to be narrow has loops of their own for that."""
    plane = find_plane(group) if target.team_units == 1 else None
    narrow = None if plane is None else narrow_plane(group, plane)
    return choose(narrow[0], general, one_launch(narrow[1])) if narrow else general


def _merged_counts(rank: int) -> Iterator[int]:
    """How many axes are tried as one, the most of them last: the two of an image, and all."""
    if rank > _IMAGE_AXES:
        yield _IMAGE_AXES
    if rank > 1:
        yield rank


def lower_elements(group: Group, target: KernelTarget) -> LoopProgram:
    """One parallel loop over the outer axes, one vector loop over the inner ones, in the result's
    storage order."""
    if (plane := find_plane(group)) is not None:
        return lower_plane(group, plane, target)
    if (columns := find_gathered_columns(group)) is not None:
        return lower_gathered_columns(group, columns)
    return _lower_scan(group)


def _lower_scan(group: Group) -> LoopProgram:
    """Every operand is read as the result's innermost axis has it."""
    result = group.results[0]
    shape = result.type.shape
    loops = _choose_loops(group)
    outer_count = dim_product(tuple(shape[axis] for axis in loops.outer))
    inner_count = dim_product(tuple(shape[axis] for axis in loops.inner))
    unit, lane = symbol("p"), symbol("j")
    if (pad := padded_axis(group)) is not None:
        if loops.inner == (pad.axis,):
            return _lower_padded(group, loops.outer, pad, loops.inner)
        if (run := pad.run_of_short_rows(group)) is not None:
            outer = tuple(axis for axis in loops.outer if axis not in run)
            return _lower_padded(group, outer, pad, run)
    if outer_count == 1:
        block = _block(inner_count)
        space = Space(shape, (Run(loops.inner, dim_mul(unit, block) + lane),))
        extent, length = ceil_div(inner_count, block), _block_length(inner_count, unit, block)
    else:
        space = Space(shape, (Run(loops.outer, unit), Run(loops.inner, lane)))
        extent, length = outer_count, inner_count
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    stored = elements.stored(result, space)
    before: tuple[Statement, ...] = ()
    if length != 0:
        written = [number for number, each in enumerate(buffers.buffers) if each.written]
        before, stored = before_loop(stored, "j", written)
    # A single element needs no lanes.
    loop = For("j", length, "vector" if loops.inner else "serial", stored)
    body: tuple[Statement, ...] = (*before, loop)
    if before and not isinstance(length, int):
        body = (For("once", dim_min(1, length), "serial", body),)
    return finish_program(buffers, body, extent, grain_for(length))


def _lower_padded(
    group: Group, outer: tuple[int, ...], pad: PaddedAxis, inner: tuple[int, ...]
) -> LoopProgram:
    """Loops for what is before, in and behind the tensor that is padded; ``inner``: the padded axis,
    and those inside of it."""
    result, (_, *rest) = group.results[0], inner
    shape = result.type.shape
    row = dim_product(tuple(shape[axis] for axis in rest))
    buffers, body, counter = GroupBuffers(group), list[Statement](), 0
    for start, count in pad.spans():
        elements, length = Elements(group, buffers), dim_mul(count, row)
        elements.counter, elements.extents = counter, {"j": length}
        runs = Run(outer, symbol("p")), Run(inner, dim_mul(start, row) + symbol("j"))
        stored = elements.stored(result, Space(shape, runs))
        counter = elements.counter
        body.append(For("j", length, "vector", stored))
    units = dim_product(tuple(shape[axis] for axis in outer))
    return finish_program(buffers, tuple(body), units, grain_for(dim_mul(shape[pad.axis], row)))


def _block(total: Dim) -> int:
    """The elements of a unit: a number that divides the tensor where one is near enough, for then
    what is the same in all rounds is computed before them, and tensors of many sizes have one
    kernel."""
    if not isinstance(total, int) or total < BLOCK_ELEMENTS:
        return BLOCK_ELEMENTS
    near = (BLOCK_ELEMENTS, *range(_BLOCK_MAX, _BLOCK_MIN - 1, -_BLOCK_STEP))
    return next((block for block in near if total % block == 0), BLOCK_ELEMENTS)


def _block_length(total: Dim, unit: Dim, block: int) -> Dim:
    if isinstance(total, int) and total % block == 0:
        return block
    if isinstance(total, int) and total < block:
        return total
    return dim_min(total - unit * block, block)


def _choose_loops(group: Group) -> _Loops:
    result = group.results[0]
    shape = result.type.shape
    order = [axis for axis in storage_order(result.view, shape) if shape[axis] != 1]
    if not order:
        return _Loops((), ())
    vector_axis = _vector_axis(group, order)
    order.remove(vector_axis)
    inner = [vector_axis]
    views = run_views(group)
    while order and views is not None and are_one_run(views, shape, order[-1], inner[0]):
        count = dim_product(tuple(shape[axis] for axis in inner))
        if has_picked(views) and typical(count) >= BLOCK_ELEMENTS:
            break  # there may be few slices, and many threads
        inner.insert(0, order.pop())
    return _Loops(tuple(order), tuple(inner))


def _vector_axis(group: Group, order: list[int]) -> int:
    """The innermost stored axis, unless it is short and another one is long and contiguous in an
    operand."""
    shape = group.results[0].type.shape
    last = order[-1]
    extent = shape[last]
    if not isinstance(extent, int) or extent >= SHORT_AXIS:
        return last
    for axis in reversed(order[:-1]):
        long_enough = not isinstance(shape[axis], int) or int(str(shape[axis])) >= 2 * SHORT_AXIS
        if long_enough and any(
            operand.type.shape == shape and operand.view.strides[axis] == 1
            for operand in group.operands
        ):
            return axis
    return last


POINTWISE = Kind("pointwise", lower_pointwise)
