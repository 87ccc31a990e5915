"""ONNX Dropout: the operand itself; where it trains, some elements are 0 and the others larger.

In: a tensor, perhaps the share of zeros and whether it trains. Out: a tensor, and a mask of what
was kept. Not done here: the stream (``random_numbers``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, full, reshape, wide_float
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import uniform


def _translate(context: OpContext) -> Sequence[int]:
    training = context.optional(2)
    if training is not None and context.known_ints(training) != (0,) and not _keeps_all(context):
        return _trained(context, training)
    x = context.operand(0)
    if not context.wants(1):
        return (x,)
    dtype = context.dtype_of(x) if context.opset < 10 else "bool"
    return x, full(context, dtype, 1, context.shape_of(x))


def _keeps_all(context: OpContext) -> bool:
    ratio = context.optional(1)
    known_values = None if ratio is None else context.known_values(ratio)
    return known_values is not None and known_values.ravel()[:1].tolist() == [0.0]


def _trained(context: OpContext, training: int) -> tuple[int, int]:
    """Zeros where a number is below the ratio, and nothing dropped where it does not train."""
    x, given = context.operand(0), context.optional(1)
    wide, shape = wide_float(context.dtype_of(x)), context.shape_of(x)
    ratio = context.scalar(wide, 0.5) if given is None else cast(context, given, wide)
    ratio, flag = reshape(context, ratio, ()), reshape(context, cast(context, training, "bool"), ())
    kept = context.add("less_equal", ratio, uniform(context, wide, shape))
    one, zero = context.scalar(wide, 1.0), context.scalar(wide, 0.0)
    factor = context.add("div", one, context.add("sub", one, ratio))
    larger = context.add("mul", cast(context, x, wide), factor)
    dropped = context.add("select", kept, larger, zero)
    result = context.add("select", flag, cast(context, dropped, context.dtype_of(x)), x)
    return result, context.add("logical_or", kept, context.add("logical_not", flag))


OPS = (OnnxOp("Dropout", _translate, since=7),)
