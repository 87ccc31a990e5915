"""The ops of ONNX-ML between labels and numbers; LabelEncoder is ``label_encoder``.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import as_rows, numbers_of
from ingot_compiler.frontend.families.strings.labels import labelled
from ingot_compiler.frontend.families.strings.lookup import found_in, places_among
from ingot_compiler.frontend.families.strings.pool import strings_of, written
from ingot_compiler.ir.op_type_error import require


def _category_mapper(context: OpContext) -> Sequence[int]:
    """Numbers in the place of strings, or strings in the place of numbers.

    In: a tensor of strings or of i64. Out: i64, or strings; a default for what is not in the list.
    """
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


def _zip_map(context: OpContext) -> Sequence[int]:
    """One map from labels to scores for each row.

    In: f32 scores [N, K]. Out: the same scores as an array [N, K]: a column for each label, in the
    order of the attribute.
    """
    texts = context.attributes.get("classlabels_strings", ())
    labels = numbers_of(context, "classlabels_int64s")
    count = len(labels) or (len(texts) if isinstance(texts, tuple) else 0)
    scores = as_rows(context, context.operand(0))
    size = context.shape_of(scores)[1]
    require(not isinstance(size, int) or size == count, f"{count} scores for as many labels", size)
    return (scores,)


OPS = (
    OnnxOp("CategoryMapper", _category_mapper),
    OnnxOp("ZipMap", _zip_map),
)
