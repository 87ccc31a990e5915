"""ai.onnx.ml OneHotEncoder: for each number or string a row that is 1 at its category.

In: a tensor of numbers or strings. Out: f32 [.., categories]; one that is none of them gives zeros, or
is refused (``zeros`` 0). Floats are cut to integers. Not done here: how strings are found (``strings/lookup``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reduce, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import numbers_of
from ingot_compiler.frontend.families.strings.lookup import places_among
from ingot_compiler.frontend.families.strings.pool import strings_of
from ingot_compiler.ir.op_type_error import OpTypeError, require


def _translate(context: OpContext) -> Sequence[int]:
    x, texts = context.operand(0), context.attributes.get("cats_strings", ())
    categories = numbers_of(context, "cats_int64s")
    if x < 0:
        words = list(map(str, texts)) if isinstance(texts, tuple) else []
        require(len(set(words)) == len(words), "categories that differ", str(words)[:64])
        x = places_among(context, strings_of(context, x), words)
        categories = tuple(range(len(words)))
    if not categories:
        raise OpTypeError("categories", "none")
    x, listed = cast(context, x, "i64"), context.integers(categories)
    hit = context.add("equal", unsqueeze(context, x, (context.rank_of(x),)), listed)
    found = cast(context, hit, "f32")
    if not context.bool_attribute("zeros", default=True):
        is_known = reduce(context, found, "max", (context.rank_of(found) - 1,), keepdims=True)
        inside = context.add("less", context.scalar("f32", 0.0), is_known)
        found = checked(context, found, inside, "every element to be a category")
    return (found,)


OP = OnnxOp("OneHotEncoder", _translate)
