"""ONNX's ops along one axis whose results lie along it as well.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    cast,
    iota,
    range_mask,
    reduce,
    reshape,
    swap_last,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_lengths, chosen_along
from ingot_compiler.frontend.build.onnx_op import OnnxOp, Translate
from ingot_compiler.frontend.build.operand_sizes import read_size, require_dim, sizes_from
from ingot_compiler.frontend.families.tensors.selection import order
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.dims import Dim, dim_max, dim_min, dim_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def cumulative(along: Callable[[OpContext, int, int], int]) -> Translate:
    """``along(context, x, axis)`` for the axis of operand 1."""

    def translate(context: OpContext) -> Sequence[int]:
        x, axis = context.operand(0), reshape(context, context.operand(1), ())
        rank, known = len(sizes_from(context, x, 1)), context.known_ints(axis)
        if known is not None:
            return (along(context, x, counted_axis(known[0], rank)),)
        # An axis that comes at run time: all results, and one is chosen.
        results = [along(context, x, other) for other in range(rank)]
        return (chosen_along(context, axis, results, rank),)

    return translate


def row_op(rows: Callable[[OpContext, int, int], int]) -> Translate:
    """``rows(context, x, axis)`` along one axis; opset < 13: along all axes from ``axis`` on, as
    one (ONNX Softmax-11)."""

    def translate(context: OpContext) -> Sequence[int]:
        x = context.operand(0)
        shape = context.shape_of(x)
        axis = counted_axis(
            context.int_attribute("axis", -1 if context.opset >= 13 else 1), max(1, len(shape))
        )
        if not shape:
            return (reshape(context, rows(context, reshape(context, x, (1,)), 0), ()),)
        if context.opset >= 13 or axis == len(shape) - 1:
            return (rows(context, x, axis),)
        matrix = reshape(context, x, (dim_product(shape[:axis]), dim_product(shape[axis:])))
        return (reshape(context, rows(context, matrix, 1), shape),)

    return translate


def _along_cum_prod(context: OpContext, x: int, axis: int) -> int:
    """Running products along an axis.

    In: a tensor of numbers and an axis. Out: core ``select`` and ``reduce`` over pairs of
    positions.
    """
    rows = swap_last(context, x, axis)
    *outer, size = context.shape_of(rows)
    other = iota(context, size)
    own = reshape(context, other, (size, 1))
    if context.bool_attribute("reverse"):
        own, other = other, own
    strict = context.bool_attribute("exclusive")
    counts = context.add("less" if strict else "less_equal", other, own)
    wide = reshape(context, rows, (*outer, 1, size))
    factors = context.add("select", counts, wide, context.scalar(context.dtype_of(x), 1))
    products = reduce(context, factors, "product", (context.rank_of(x),))
    return swap_last(context, products, axis)


def _along_cum_sum(context: OpContext, x: int, axis: int) -> int:
    """Running sums along an axis.

    In: a tensor and an axis, known or computed at run time. Out: core ``cumsum``.
    """
    exclusive, reverse = (context.bool_attribute(name) for name in ("exclusive", "reverse"))
    return context.add("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


def _rows_hardmax(context: OpContext, x: int, axis: int) -> int:
    """1 at the first greatest element along an axis, 0 elsewhere.

    In: a float tensor. Out: core ``argmax``, ``equal``, ``cast``.
    """
    best = context.add("argmax", x, axis=axis, select_last=False, keepdims=True)
    positions = range_mask(
        context,
        [size if axis == other else 1 for other, size in enumerate(context.shape_of(x))],
        axis,
    )
    return cast(context, context.add("equal", best, positions), context.dtype_of(x))


def _rows_log_softmax(context: OpContext, x: int, axis: int) -> int:
    """Log of softmax along an axis.

    In: a float tensor. Out: core ``log_softmax``.
    """
    return context.add("log_softmax", x, axis=axis)


def _lp_normalization(context: OpContext) -> Sequence[int]:
    """``x`` divided by its p-norm along an axis; 0 where the norm is 0.

    In: a float tensor. Out: core ``reduce``, ``div``, ``select``.
    """
    x = context.operand(0)
    axis = context.axis_attribute(-1, context.rank_of(x))
    first = context.int_attribute("p", 2) == 1
    powers = context.add("abs", x) if first else context.add("mul", x, x)
    total = reduce(context, powers, "sum", (axis,), keepdims=True)
    norm = total if first else context.add("sqrt", total)
    zero = context.scalar(context.dtype_of(x), 0)
    return (
        context.add("select", context.add("equal", norm, zero), zero, context.add("div", x, norm)),
    )


def _reverse_sequence(context: OpContext) -> Sequence[int]:
    """The first elements of every row backwards, as many as its length says.

    In: a tensor and i64 lengths. Out: core ``gather_elements``.
    """
    x, lengths = context.operand(0), context.operand(1)
    shape = context.shape_of(x)
    batch, time = context.int_attribute("batch_axis", 1), context.int_attribute("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape) < 2:
        raise OpTypeError("batch_axis and time_axis 0 and 1, in any order", f"{batch} and {time}")
    ones: list[Dim] = [1] * len(shape)
    ones[batch] = shape[batch]
    length = reshape(context, checked_lengths(context, lengths, shape[time]), ones)
    step = range_mask(context, shape, time)
    last = context.add("sub", length, context.scalar("i64", 1))
    mirrored = context.add(
        "select", context.add("less", step, length), context.add("sub", last, step), step
    )
    return (context.add("gather_elements", x, broadcast_to(context, mirrored, shape), axis=time),)


def softmax_rows(context: OpContext, x: int, axis: int) -> int:
    """Softmax along one axis."""
    return context.add("softmax", x, axis=axis)


SOFTMAX = OnnxOp("Softmax", row_op(softmax_rows))


def _count(context: OpContext) -> Dim:
    if context.opset < 10:
        return context.int_attribute("k", 1)
    return read_size(context, cast(context, context.operand(1), "i64"))


def _top_k(context: OpContext) -> Sequence[int]:
    """The largest or smallest elements along an axis, sorted.

    In: a tensor and K, known or computed at run time. Out: values and i64 positions.
    """
    x = context.operand(0)
    rank = context.rank_of(x)
    axis = context.axis_attribute(-1, rank)
    count, size = _count(context), context.shape_of(x)[axis]
    outside = dim_max(count - size, 0) - dim_min(count, 0)
    require_dim(context, outside, message("K in [0, ", size, "]"), count)
    rows = swap_last(context, x, axis)
    largest = context.bool_attribute("largest", default=True)
    places = order(context, rows, largest=largest, count=count)
    values = context.add("gather_elements", rows, places, axis=rank - 1)
    return swap_last(context, values, axis), swap_last(context, places, axis)


OPS = (
    OnnxOp("CumProd", cumulative(_along_cum_prod), 26),
    OnnxOp("CumSum", cumulative(_along_cum_sum)),
    OnnxOp("Hardmax", row_op(_rows_hardmax)),
    OnnxOp("LogSoftmax", row_op(_rows_log_softmax)),
    OnnxOp("LpNormalization", _lp_normalization),
    OnnxOp("ReverseSequence", _reverse_sequence),
    SOFTMAX,
    OnnxOp("TopK", _top_k),
)
