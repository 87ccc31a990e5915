"""Values of a translation and their forms in a bundle.

In: a context, a value or a form with its tensors. Out: the form, or the value. Not done here: what
forms are (``ir.value_forms``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.sequences import add_value, value_of
from ingot_compiler.frontend.build.values import (
    KnownSequence,
    Maybe,
    Nothing,
    RaggedSequence,
    Shaped,
    Strings,
)


def form_of(context: OpContext, value: int) -> str:
    """The form of a value."""
    match value_of(context, value):
        case None:
            return "t"
        case Strings():
            return "s"
        case Shaped(data, _):
            return f"d{form_of(context, data)}"
        case RaggedSequence(data=data):
            return f"q{form_of(context, data)}"
        case Maybe(inner, _):
            return f"o{form_of(context, inner)}"
        case KnownSequence(items):
            return f"l{''.join(form_of(context, item) for item in items)}e"
        case Nothing():
            return "n"


def value_of_form(context: OpContext, form: str, tensors: Iterator[int]) -> int:
    """The value of the tensors that come next."""
    kind, inner = form[0], form[1:]
    if kind == "t":
        return next(tensors)
    if kind == "s":
        return add_value(context, Strings(next(tensors), next(tensors)))
    held = value_of_form(context, inner, tensors)
    if kind == "o":
        return add_value(context, Maybe(held, next(tensors)))
    shapes = next(tensors)
    rank = context.shape_of(shapes)[1]
    return add_value(context, RaggedSequence(held, shapes, rank if isinstance(rank, int) else None))
