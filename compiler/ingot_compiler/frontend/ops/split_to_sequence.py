"""ONNX SplitToSequence: parts of a tensor along an axis as a sequence.

In: a tensor, perhaps one size for all parts or one for each. Out: a sequence, of known length where
sizes and axis are known. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import LENGTH_MAX, add_value, make_sequence
from ingot_compiler.frontend.build.values import RaggedSequence
from ingot_compiler.frontend.families.sequences.ragged import shape_of
from ingot_compiler.frontend.families.sequences.ragged_axes import equal_sizes, split, without_axis
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x, given = context.operand(0), context.optional(1)
    rank = 0 if given is None else context.rank_of(given)
    require(rank <= 1, "one size, or a list of sizes", f"{rank} dimensions")
    shape = shape_of(context, x)
    axis = context.axis_attribute(0, len(shape))
    keeps = given is not None or context.bool_attribute("keepdims", default=True)
    sizes = _known_sizes(context, given, shape[axis])
    if sizes is None or x < 0:
        return (add_value(context, _packed(context, x, axis, keeps=keeps)),)
    starts: list[Dim] = [0]
    for part in sizes:
        starts.append(starts[-1] + part)
    parts = [
        slice_axis(context, x, axis, start, part)
        for start, part in zip(starts, sizes, strict=False)
    ]
    if not keeps:
        parts = [_without(context, part, axis) for part in parts]
    return (make_sequence(context, parts),)


def _packed(context: OpContext, x: int, axis: int, *, keeps: bool) -> RaggedSequence:
    """Parts whose sizes or number only a run knows."""
    given = context.optional(1)
    if given is None or context.rank_of(given) == 0:
        step = context.scalar("i64", 1) if given is None else cast(context, given, "i64")
        sizes = equal_sizes(context, step, shape_of(context, x)[axis])
        size = 1 if context.known_ints(step) == (1,) else None  # else the last may be smaller
    else:
        sizes = cast(context, given, "i64")
        size = _repeated(context, given)
    found = split(context, x, axis, sizes, size)
    return found if keeps else without_axis(context, found, axis)


def _repeated(context: OpContext, vector: int) -> int | None:
    """The number that all elements of a vector are, whose length only a run knows; None for any
    other vector. Exporters split into parts of size 1 by a ConstantOfShape."""
    for node in reversed(context.translation.builder.nodes):
        if vector in node.results and node.op in ("broadcast_to", "reshape"):
            (vector,) = node.operands
    known = context.known_ints(vector)
    return known[0] if known is not None and len(known) == 1 else None


def _known_sizes(context: OpContext, given: int | None, size: Dim) -> tuple[int, ...] | None:
    """The sizes of the parts; None where only a run knows them."""
    known = (1,) if given is None else context.known_ints(given)
    if known is None or not isinstance(size, int):
        return None
    if given is None or context.rank_of(given) == 0:
        step = known[0]
        require(step > 0, "a positive size of parts", step)
        if size > step * LENGTH_MAX:
            return None
        return tuple(min(step, size - start) for start in range(0, size, step))
    fits = min(known, default=0) >= 0 and sum(known) == size
    require(fits, f"sizes that add up to {size}", list(known))
    return known


def _without(context: OpContext, x: int, axis: int) -> int:
    shape = list(context.shape_of(x))
    del shape[axis]
    return reshape(context, x, shape)


OPS = (OnnxOp("SplitToSequence", _translate),)
