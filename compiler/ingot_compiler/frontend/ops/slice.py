"""ONNX Slice: a strided part; bounds are attributes before opset 10, then operands.

In: a tensor, starts, ends, perhaps axes and steps, each known or computed at run time. Out: core
``slice``; ``gather`` for steps of an axis that are computed at run time and are not 1. Not done
here: the arithmetic of bounds (``slices``, ``run_time_shapes``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import I64_MAX
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import not_zero
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import with_count
from ingot_compiler.frontend.build.run_time_shapes import per_axis, slice_bounds, slice_by_steps
from ingot_compiler.frontend.families.tensors.slices import axis_bounds, clamped
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError

_Vectors = tuple[int, int, int, int]


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    starts, ends, axes, steps = vectors = _vectors(context)
    known_axes, known_steps = context.known_ints(axes), context.known_ints(steps)
    if known_axes is None or known_steps is None:
        is_dense = known_steps is not None and all(step == 1 for step in known_steps)
        of_all = _per_axis(context, vectors, rank)
        if is_dense:
            return (_dense(context, x, *of_all[:2]),)
        return slice_by_steps(context, x, *of_all)
    known_steps = tuple(map(clamped, known_steps))
    counted = tuple(counted_axis(axis, rank) for axis in known_axes)
    if len(set(counted)) < len(counted):
        raise OpTypeError("every axis at most once", list(known_axes))
    sizes = [context.shape_of(x)[axis] for axis in counted]
    resolved = _resolve(context, (starts, ends), sizes, known_steps)
    entries = zip(*resolved, known_steps, strict=True)
    return (_slice(context, x, dict(zip(counted, entries, strict=True))),)


def _vectors(context: OpContext) -> _Vectors:
    """Starts, ends, axes and steps, as many of each."""
    starts, ends = _operand(context, 1, "starts"), _operand(context, 2, "ends")
    assert starts is not None
    assert ends is not None
    axes, steps = _operand(context, 3, "axes"), _operand(context, 4, "steps")
    vectors = [vector for vector in (starts, ends, axes, steps) if vector is not None]
    count = _count(context, vectors)
    starts, ends = (with_count(context, item, count, "bounds") for item in (starts, ends))
    axes = context.integers(range(count)) if axes is None else axes
    steps = context.integers([1] * count) if steps is None else steps
    axes, steps = (with_count(context, item, count, "axes") for item in (axes, steps))
    return starts, ends, axes, steps


def _count(context: OpContext, vectors: Sequence[int]) -> int:
    """How many axes are sliced: as many as one of the vectors tells. Where only a run knows all of
    their lengths it is one, which the run checks: a bound is often a slice of a list of bounds."""
    counts = {
        context.count_of(vector)
        for vector in vectors
        if isinstance(context.type_of(vector).element_count, int)
    }
    if len(counts) > 1:
        raise OpTypeError("as many starts, ends, axes and steps", sorted(counts))
    return counts.pop() if counts else 1


def _per_axis(context: OpContext, vectors: _Vectors, rank: int) -> tuple[int, int, int]:
    """Starts, ends and steps of every axis; those that are not named stay whole."""
    starts, ends, axes, steps = vectors
    steps = not_zero(context, steps, "step")
    return (
        per_axis(context, axes, starts, [0] * rank),
        per_axis(context, axes, ends, [I64_MAX] * rank),
        per_axis(context, axes, steps, [1] * rank),
    )


def _operand(context: OpContext, position: int, name: str) -> int | None:
    if context.opset >= 10:
        return context.optional(position)
    values = context.ints_attribute(name)
    return None if values is None else context.integers(values)


def _resolve(
    context: OpContext, bounds: tuple[int, int], sizes: Sequence[Dim], steps: Sequence[int]
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """First indices and element counts, symbolic where everything is known, else read at run
    time."""
    starts, ends = (context.dims(bound) for bound in bounds)
    if starts is not None and ends is not None:
        pairs = [axis_bounds(*entry) for entry in zip(starts, ends, sizes, steps, strict=True)]
        known = [pair for pair in pairs if pair is not None]
        if len(known) == len(pairs):
            return tuple(first for first, _ in known), tuple(count for _, count in known)
    return slice_bounds(context, *bounds, sizes, steps)


def _dense(context: OpContext, x: int, starts: int, ends: int) -> int:
    """All elements between bounds of every axis that a run computes."""
    sizes = context.shape_of(x)
    steps = [1] * len(sizes)
    resolved = slice_bounds(context, starts, ends, sizes, steps)
    return _slice(context, x, dict(enumerate(zip(*resolved, steps, strict=True))))


def _slice(context: OpContext, x: int, entries: dict[int, tuple[Dim, Dim, int]]) -> int:
    shape = context.shape_of(x)
    full = [entries.get(axis, (0, size, 1)) for axis, size in enumerate(shape)]
    if all(entry == (0, size, 1) for entry, size in zip(full, shape, strict=True)):
        return x
    starts, sizes, steps = (tuple(entry[part] for entry in full) for part in range(3))
    return context.add("slice", x, starts=starts, sizes=sizes, steps=steps)


OPS = (OnnxOp("Slice", _translate),)
