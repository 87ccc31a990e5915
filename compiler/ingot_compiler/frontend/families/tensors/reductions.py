"""Reductions: axes from an attribute or an operand, known or computed at run time.

In: a context of a Reduce* or Arg* node. Out: its result. Not done here: what is reduced (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.compose import (
    cast,
    concat,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import Translate
from ingot_compiler.frontend.build.run_time_shapes import axis_flags, kept_sizes, sizes_around
from ingot_compiler.frontend.model.onnx_node import counted_axes
from ingot_compiler.ir.dims import dim_min
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
    """Translate a reduction by the core ops that ``reducer`` makes."""

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
    none_are_all = not context.int_attribute("noop_with_empty_axes", 0)
    if operand is not None and axes is None:
        count = context.type_of(operand).element_count if keepdims else context.count_of(operand)
        if isinstance(count, int) and count > rank:
            raise OpTypeError(f"at most {rank} axes", count)
        if count == 1:
            return _reduced_by_axis(context, reducer, x, operand, keepdims)
        flags = axis_flags(context, operand, rank)
        if none_are_all and not isinstance(count, int):
            is_none = cast(context, size_scalar(context, 1 - dim_min(count, 1)), "bool")
            flags = context.add("logical_or", flags, is_none)
        kept = _reduced_by_flags(context, reducer, x, flags)
        if keepdims:
            return kept
        sizes = kept_sizes(context, flags, context.shape_of(x), context.count_of(operand))
        return reshape(context, kept, sizes)
    if not axes:
        axes = tuple(range(rank)) if none_are_all else ()
    return reducer(context, x, counted_axes(axes, rank), keepdims)


def _reduced_by_axis(
    context: OpContext, reducer: Reducer, x: int, operand: int, keepdims: bool
) -> int:
    """One axis is the middle one of three, the sizes of which are computed first."""
    before, size, after, *sizes = sizes_around(context, operand, context.shape_of(x), keepdims)
    middle = reshape(context, x, (before, size, after))
    return reshape(context, reducer(context, middle, (1,), True), sizes)


def _reduced_by_flags(context: OpContext, reducer: Reducer, x: int, flags: int) -> int:
    """Every axis is reduced to one element or kept by a flag that is computed first: all but the
    last one at once, each as an axis that is kept beside one that is reduced, of which one has its
    elements and the other has one."""
    shape, one = context.shape_of(x), context.scalar("i64", 1)
    own = context.integers(shape)
    kept = context.read_dims(context.add("select", flags, one, own))
    if len(shape) > 1:
        gone = context.read_dims(context.add("select", flags, own, one))[:-1]
        pairs = [size for pair in zip(kept, gone, strict=False) for size in pair]
        reduced = tuple(range(1, len(pairs), 2))
        x = reducer(context, reshape(context, x, (*pairs, shape[-1])), reduced, True)
        x = reshape(context, x, (*kept[:-1], shape[-1]))
    last = len(shape) - 1
    starts = context.read_dims(cast(context, context.add("logical_not", flags), "i64"))
    # The reduced element in front of the others: a slice takes the one or the others, whatever
    # their number.
    both = concat(context, [reducer(context, x, (last,), True), x], last)
    return slice_axis(context, both, last, starts[last], kept[last])


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
