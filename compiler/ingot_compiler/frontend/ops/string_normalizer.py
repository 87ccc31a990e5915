"""ONNX StringNormalizer: stop words removed, then letters in lower or upper case.

In: strings [C] or [1, C]. Out: strings [D] or [1, D], one that is empty where none is left. Not
done here: languages (``locale``), by whose rules some letters change otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, concat, full, reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import shape_of_strings, spans_of
from ingot_compiler.frontend.families.strings.letters import changed_text, in_case
from ingot_compiler.frontend.families.strings.lookup import places_among
from ingot_compiler.frontend.families.strings.pool import strings_of
from ingot_compiler.frontend.families.tensors.selection import positions_of_true
from ingot_compiler.ir.dims import dim_max
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    strings = strings_of(context, context.operand(0))
    shape = shape_of_strings(context, strings)
    fits = len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)
    require(fits, "strings of shape [C] or [1, C]", str(shape))
    case = context.string_attribute("case_change_action", "NONE", ("NONE", "LOWER", "UPPER"))
    words = context.attributes.get("stopwords", ())
    texts = [str(word) for word in words] if isinstance(words, tuple) else []
    kept = _without(context, strings, texts, case) if texts else strings
    flat = Strings(spans_of(context, kept), kept.pool)
    changed = flat if case == "NONE" else in_case(context, flat, case)
    spans = _not_empty(context, changed.spans)
    size = context.shape_of(spans)[0]
    return (
        add_value(context, Strings(reshape(context, spans, (*shape[:-1], size, 2)), changed.pool)),
    )


def _without(context: OpContext, strings: Strings, texts: Sequence[str], case: str) -> Strings:
    """The strings that are none of some."""
    flat = Strings(spans_of(context, strings), strings.pool)
    seen = flat
    if not context.bool_attribute("is_case_sensitive"):
        seen = in_case(context, flat, case if case != "NONE" else "LOWER")
        texts = [changed_text(case if case != "NONE" else "LOWER", text) for text in texts]
    places = places_among(context, seen, list(dict.fromkeys(texts)))
    kept = positions_of_true(context, binary_scalar(context, "less", places, 0))
    return Strings(context.add("gather", flat.spans, kept, axis=0), flat.pool)


def _not_empty(context: OpContext, spans: int) -> int:
    """The places of strings, or of one that is empty."""
    count = context.shape_of(spans)[0]
    longer = concat(context, [spans, full(context, "i64", 0, (1, 2))], 0)
    return slice_axis(context, longer, 0, 0, dim_max(count, 1))


OPS = (OnnxOp("StringNormalizer", _translate),)
