"""ONNX SplitToSequence: parts of a tensor along an axis as a sequence.

In: a tensor, perhaps one size for all parts or one for each. Out: a sequence. Not done here: sizes
that only a run knows (unsupported): they decide the length.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import reshape, slice_axis
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import LENGTH_MAX, make_sequence
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import require

_REASON = "a sequence whose length is known at run time only"


def _translate(context: OpContext) -> Sequence[int]:
    x, given = context.operand(0), context.optional(1)
    axis = context.axis_attribute(0, context.rank_of(x))
    size = context.shape_of(x)[axis]
    sizes = _sizes(context, given, size)
    starts: list[Dim] = [0]
    for part in sizes:
        starts.append(starts[-1] + part)
    parts = [
        slice_axis(context, x, axis, start, part)
        for start, part in zip(starts, sizes, strict=False)
    ]
    if given is None and not context.bool_attribute("keepdims", default=True):
        parts = [_without(context, part, axis) for part in parts]
    return (make_sequence(context, parts),)


def _sizes(context: OpContext, given: int | None, size: Dim) -> tuple[int, ...]:
    known = (1,) if given is None else context.known_ints(given)
    if known is None or not isinstance(size, int):
        raise Unsupported(_REASON)
    if given is None or context.rank_of(given) == 0:
        step = known[0]
        require(step > 0, "a positive size of parts", step)
        require(size <= step * LENGTH_MAX, f"at most {LENGTH_MAX} parts", size // step)
        return tuple(min(step, size - start) for start in range(0, size, step))
    fits = min(known, default=0) >= 0 and sum(known) == size
    require(fits, f"sizes that add up to {size}", list(known))
    return known


def _without(context: OpContext, x: int, axis: int) -> int:
    shape = list(context.shape_of(x))
    del shape[axis]
    return reshape(context, x, shape)


OP = OnnxOp("SplitToSequence", _translate)
