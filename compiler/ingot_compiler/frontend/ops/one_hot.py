"""ONNX OneHot: two values, the second where the position along a new axis equals the index.

In: indices, depth (known or computed at run time), values [off, on]. Out: core ``equal``,
``select``. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    cast,
    element,
    less_scalar,
    range_mask,
    reshape,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    indices = cast(context, context.operand(0), "i64")
    depth = cast(context, reshape(context, context.operand(1), (1,)), "i64")
    size = context.read_dims(depth)[0]
    rank = context.rank_of(indices) + 1
    axis = context.axis_attribute(-1, rank)
    wrapped = context.add(
        "select",
        less_scalar(context, indices, 0),
        context.add("add", indices, reshape(context, depth, ())),
        indices,
    )
    positions = range_mask(context, [size if axis == other else 1 for other in range(rank)], axis)
    hot = context.add("equal", unsqueeze(context, wrapped, (axis,)), positions)
    values = context.operand(2)
    return (context.add("select", hot, element(context, values, 1), element(context, values, 0)),)


OP = OnnxOp("OneHot", _translate)
