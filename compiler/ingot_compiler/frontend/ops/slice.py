"""ONNX Slice: a strided part; bounds are attributes before opset 10, then operands.

In: a tensor, starts, ends, perhaps axes and steps, each known or computed at run time. Out: core
``slice``; ``gather`` for steps computed at run time. Not done here: the arithmetic of bounds
(``slices``, ``run_time_shapes``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import I64_MAX
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.index_checks import not_zero
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.run_time_shapes import per_axis, slice_bounds, slice_by_gather
from ingot_compiler.frontend.slices import axis_bounds
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    starts, ends = _operand(context, 1, "starts"), _operand(context, 2, "ends")
    assert starts is not None
    assert ends is not None
    count = context.count_of(starts)
    axes, steps = _operand(context, 3, "axes"), _operand(context, 4, "steps")
    axes = context.integers(range(count)) if axes is None else axes
    steps = context.integers([1] * count) if steps is None else steps
    _check_counts(context, (starts, ends, axes, steps))
    known_axes, known_steps = context.known_ints(axes), context.known_ints(steps)
    if known_axes is None or known_steps is None:
        steps = not_zero(context, steps, "step")
        bounds = [per_axis(context, axes, values, default) for values, default in (
            (starts, [0] * rank), (ends, [I64_MAX] * rank), (steps, [1] * rank))]  # fmt: skip
        return (slice_by_gather(context, x, bounds[0], bounds[1], bounds[2]),)
    counted = tuple(context.axis(axis, rank) for axis in known_axes)
    if len(set(counted)) < count:
        raise OpTypeError("every axis at most once", list(known_axes))
    resolved = _resolve(
        context, (starts, ends), [context.shape_of(x)[axis] for axis in counted], known_steps
    )
    return (
        _slice(
            context, x, dict(zip(counted, zip(*resolved, known_steps, strict=True), strict=True))
        ),
    )


def _operand(context: OpContext, position: int, name: str) -> int | None:
    if context.opset >= 10:
        return context.optional(position)
    values = context.ints_attribute(name)
    return None if values is None else context.integers(values)


def _check_counts(context: OpContext, vectors: Sequence[int]) -> None:
    counts = [context.count_of(vector) for vector in vectors]
    if len(set(counts)) > 1:
        raise OpTypeError("as many starts, ends, axes and steps", counts)


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


def _slice(context: OpContext, x: int, entries: dict[int, tuple[Dim, Dim, int]]) -> int:
    shape = context.shape_of(x)
    full = [entries.get(axis, (0, size, 1)) for axis, size in enumerate(shape)]
    if all(entry == (0, size, 1) for entry, size in zip(full, shape, strict=True)):
        return x
    starts, sizes, steps = (tuple(entry[part] for entry in full) for part in range(3))
    return context.add("slice", x, starts=starts, sizes=sizes, steps=steps)


OP = OnnxOp("Slice", _translate)
