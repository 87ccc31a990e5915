"""ONNX TensorScatter: a cache with an update written at every batch's own position.

In: a cache, an update, perhaps i64 positions. Out: core ``write_rows``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    broadcast_to,
    cast,
    iota,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from, sizes_of
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.message import message


def _translate(context: OpContext) -> Sequence[int]:
    cache, update = context.operand(0), context.operand(1)
    shape = sizes_from(context, cache, 1)
    axis = context.axis_attribute(-2, len(shape))
    count = sizes_of(context, update, len(shape))[axis]
    places = _places(context, shape[0], shape[axis], count)
    return (context.add("write_rows", cache, places, update, axis=axis, held=False),)


def _places(context: OpContext, batch: Dim, length: Dim, count: Dim) -> int:
    """[batch or 1, count]: where each row of the update goes."""
    numbers = reshape(context, iota(context, count), (1, count))
    where = context.optional(2)
    if where is None:
        return numbers
    start = reshape(context, cast(context, where, "i64"), (batch, 1))
    circular = context.string_attribute("mode", "linear", ("linear", "circular")) == "circular"
    start = start if circular else _checked(context, start, length, count)
    places = context.add(
        "add", *(broadcast_to(context, x, (batch, count)) for x in (start, numbers))
    )
    return context.add("mod", places, size_scalar(context, length)) if circular else places


def _checked(context: OpContext, start: int, length: Dim, count: Dim) -> int:
    """Positions from which on the update fits into the cache."""
    last = dim_add(length, dim_mul(count, -1))
    not_before = context.add("less_equal", context.scalar("i64", 0), start)
    not_behind = context.add("less_equal", start, size_scalar(context, last))
    inside = context.add("logical_and", not_before, not_behind)
    return checked(context, start, inside, message("every write index in [0, ", last, "]"))


OPS = (OnnxOp("TensorScatter", _translate, 24),)
