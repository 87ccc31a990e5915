"""ai.onnx.ml CategoryMapper: numbers in the place of strings, or strings in the place of numbers.

In: a tensor of strings or of i64. Out: i64, or strings; a default for what is not in the list. Not
done here: how strings are found (``strings/lookup``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import numbers_of
from ingot_compiler.frontend.families.strings.labels import labelled
from ingot_compiler.frontend.families.strings.lookup import found_in, places_among
from ingot_compiler.frontend.families.strings.pool import strings_of, written
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    listed = context.attributes.get("cats_strings", ())
    texts = [str(text) for text in listed] if isinstance(listed, tuple) else []
    numbers, x = numbers_of(context, "cats_int64s"), context.operand(0)
    require(
        len(numbers) == len(texts) > 0, f"{len(texts)} numbers for as many strings", len(numbers)
    )
    if x < 0:
        lasts = dict(zip(texts, numbers, strict=True))
        places = places_among(context, strings_of(context, x), list(lasts))
        found = context.add("less_equal", context.scalar("i64", 0), places)
        safe = context.add("max", places, context.scalar("i64", 0))
        values = context.add("gather", written(context, "i64", list(lasts.values())), safe, axis=0)
        default = context.scalar("i64", context.int_attribute("default_int64", -1))
        shape = context.shape_of(places)
        return (context.add("select", found, values, broadcast_to(context, default, shape)),)
    called = dict(zip(numbers, texts, strict=True))
    places = found_in(context, x, sorted(called))
    found = context.add("less_equal", context.scalar("i64", 0), places)
    default_text = context.string_attribute("default_string", "_Unused")
    return (
        labelled(
            context, places, found, [*(called[number] for number in sorted(called)), default_text]
        ),
    )


OP = OnnxOp("CategoryMapper", _translate)
