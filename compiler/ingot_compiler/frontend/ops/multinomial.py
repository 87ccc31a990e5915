"""ONNX Multinomial: classes drawn by their unnormalised log probabilities.

In: [batch, classes]. Out: i32 or i64 [batch, sample_size]. Not done here: the stream
(``random_numbers``).

The class of a number u in [0, 1) is the first whose sum of probabilities up to it is above u times
the whole sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reduce, slice_axis, unsqueeze, wide_float
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import uniform, wanted_dtype
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x, count = context.operand(0), context.int_attribute("sample_size", 1)
    require(context.rank_of(x) == 2, "[batch, classes]", context.type_of(x))
    require(count >= 0, "a sample_size from 0 on", count)
    dtype = wanted_dtype(context, "i32", floats_only=False)
    if dtype not in ("i32", "i64"):
        raise Unsupported(f"classes as {dtype}")
    x = cast(context, x, wide_float(context.dtype_of(x)))
    most = reduce(context, x, "max", (1,), keepdims=True)
    parts = context.add("exp", context.add("sub", x, most))
    sums = context.add("cumsum", parts, axis=1, exclusive=False, reverse=False)
    batch, classes = context.shape_of(x)
    total = slice_axis(context, sums, 1, classes - 1, 1)
    limit = context.add("mul", uniform(context, context.dtype_of(x), (batch, count)), total)
    inner = slice_axis(context, sums, 1, 0, classes - 1)
    passed = context.add(
        "less_equal", unsqueeze(context, inner, (1,)), unsqueeze(context, limit, (2,))
    )
    return (reduce(context, cast(context, passed, dtype), "sum", (2,)),)


OP = OnnxOp("Multinomial", _translate)
