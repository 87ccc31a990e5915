"""Strings that a model writes down, by their places.

In: a context, places, texts. Out: strings. Not done here: the places (``lookup``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import Translate
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.pool import written_strings


def labelled(context: OpContext, places: int, found: int, texts: Sequence[str]) -> int:
    """The text of each place, the last one where nothing is found."""
    last = context.scalar("i64", len(texts) - 1)
    return texts_at(context, context.add("select", found, places, last), texts)


def texts_at(context: OpContext, places: int, texts: Sequence[str]) -> int:
    """The text of each place."""
    table = written_strings(context, texts, (len(texts),))
    spans = context.add("gather", table.spans, places, axis=0)
    return add_value(context, Strings(spans, table.pool))


def with_text_labels(translate: Translate) -> Translate:
    """A classifier whose labels may be strings: places become the labels."""

    def labels(context: OpContext) -> Sequence[int]:
        first, *others = translate(context)
        texts = context.attributes.get("classlabels_strings", ())
        if isinstance(texts, tuple) and texts and context.wants(0):
            first = texts_at(context, first, [str(text) for text in texts])
        return first, *others

    return labels
