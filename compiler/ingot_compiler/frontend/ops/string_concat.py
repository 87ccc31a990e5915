"""ONNX StringConcat: strings one behind the other, elementwise with broadcasting.

In: two tensors of strings. Out: strings. Not done here: numbers (refused).

Each result has a row of as many bytes as the longest of both operands have together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import full, iota, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.broadcasting import alike
from ingot_compiler.frontend.families.strings.characters import (
    ends_of,
    longest,
    shape_of_strings,
    spans_of,
)
from ingot_compiler.frontend.families.strings.pool import joined_strings, strings_of
from ingot_compiler.ir.dims import dim_product


def _translate(context: OpContext) -> Sequence[int]:
    pair = alike(context, *(strings_of(context, context.operand(at)) for at in range(2)))
    shape = shape_of_strings(context, pair[0])
    count = dim_product(shape)
    spans, pool = joined_strings(context, pair)
    first, second = (ends_of(context, spans_of(context, Strings(own, pool))) for own in spans)
    lengths = [context.add("sub", end, begin) for begin, end in (first, second)]
    total = context.add("add", *lengths)
    width = longest(context, total)
    places, column = iota(context, width), (count, 1)
    before = context.add("less", places, reshape(context, lengths[0], column))
    inside = context.add("less", places, reshape(context, total, column))
    shift = context.add("sub", second[0], lengths[0])
    starts = context.add(
        "select", before, reshape(context, first[0], column), reshape(context, shift, column)
    )
    source = context.add(
        "select", inside, context.add("add", starts, places), context.scalar("i64", 0)
    )
    whole = context.add("concat", pool, full(context, "u8", 0, (1,)), axis=0)
    data = reshape(context, context.add("gather", whole, source, axis=0), (count * width,))
    begin = context.add("mul", iota(context, count), size_scalar(context, width))
    end = context.add("add", begin, total)
    table = context.add(
        "concat", *(reshape(context, each, column) for each in (begin, end)), axis=1
    )
    return (add_value(context, Strings(reshape(context, table, (*shape, 2)), data)),)


OPS = (OnnxOp("StringConcat", _translate),)
