"""Reductions: axes from an attribute or an operand, known or computed at run time.

In: a context of a Reduce* or Arg* node. Out: its result. Not done here: what is reduced (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.compose import cast, concat, reduce, reshape, slice_axis
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_node import counted_axes
from ingot_compiler.frontend.onnx_op import Translate
from ingot_compiler.frontend.run_time_shapes import axis_flags, kept_sizes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError

Reducer = Callable[[OpContext, int, tuple[int, ...], bool], int]
"""(context, x, axes, keepdims) -> x reduced; must give the same when it goes over one axis after
the other."""

Elementwise = Callable[[OpContext, int], int]


def reduction(
    function: str,
    operand_since: int,
    before: Elementwise | None = None,
    after: Elementwise | None = None,
) -> Translate:
    """``after(reduce(before(x)))``; the axes are an attribute before opset ``operand_since``, then
    an operand.

    ONNX ReduceSumSquare-18: over no axes, the steps before and after are still done.
    """

    def reducer(context: OpContext, x: int, axes: tuple[int, ...], keepdims: bool) -> int:
        return reduce(context, x, function, axes, keepdims=keepdims) if axes else x

    return reduction_by(reducer, operand_since, before, after)


def reduction_by(
    reducer: Reducer,
    operand_since: int,
    before: Elementwise | None = None,
    after: Elementwise | None = None,
) -> Translate:
    """The same with a ``reducer`` of its own."""

    def translate(context: OpContext) -> Sequence[int]:
        x, keepdims = context.operand(0), context.bool_attribute("keepdims", default=True)
        x = before(context, x) if before else x
        result = _reduced(context, reducer, x, operand_since, keepdims)
        return (after(context, result) if after else result,)

    return translate


def _reduced(
    context: OpContext, reducer: Reducer, x: int, operand_since: int, keepdims: bool
) -> int:
    rank = context.rank_of(x)
    operand = context.optional(1) if context.opset >= operand_since else None
    axes = context.ints_attribute("axes") if operand is None else context.known_ints(operand)
    if operand is not None and axes is None and context.count_of(operand):
        return _run_time_axes(context, reducer, x, operand, keepdims)
    if not axes:
        axes = () if context.int_attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return reducer(context, x, counted_axes(axes, rank), keepdims)


def _run_time_axes(context: OpContext, reducer: Reducer, x: int, axes: int, keepdims: bool) -> int:
    """Axes that a tensor computes: every axis is reduced or kept by a flag that is computed
    first."""
    shape = context.shape_of(x)
    count = context.count_of(axes)
    if count > len(shape):
        raise OpTypeError(f"at most {len(shape)} axes", count)
    flags = axis_flags(context, axes, len(shape))
    sizes = context.read_dims(
        context.add("select", flags, context.scalar("i64", 1), context.integers(shape))
    )
    starts = context.read_dims(cast(context, context.add("logical_not", flags), "i64"))
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        # The reduced element in front of the others: a slice takes the one or the others, whatever
        # their number.
        both = concat(context, [reducer(context, x, (axis,), True), x], axis)
        x = slice_axis(context, both, axis, start, size)
    return x if keepdims else reshape(context, x, kept_sizes(context, flags, shape, count))


def arg_extreme(op: OpName) -> Translate:
    """ArgMax and ArgMin."""

    def translate(context: OpContext) -> Sequence[int]:
        x = context.operand(0)
        axis = context.axis_attribute(0, context.rank_of(x))
        last, keepdims = (
            context.int_attribute("select_last_index", 0),
            context.int_attribute("keepdims", 1),
        )
        return (context.add(op, x, axis=axis, select_last=bool(last), keepdims=bool(keepdims)),)

    return translate
