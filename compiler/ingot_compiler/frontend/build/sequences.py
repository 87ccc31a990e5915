"""Sequences and optionals while a model is translated.

In: a context, value ids. Out: value ids of values and of the tensors that they are made of. Not
done here: what a run decides (``ragged``), the ops (``ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.values import (
    KnownSequence,
    Maybe,
    Nothing,
    RaggedSequence,
    Shaped,
    Strings,
    Value,
)
from ingot_compiler.ir.op_type_error import OpTypeError, require

LENGTH_MAX = 4096


def value_of(context: OpContext, value: int) -> Value | None:
    """What an id stands for; None for a tensor."""
    return context.translation.values.get(value)


def add_value(context: OpContext, value: Value) -> int:
    """The id of a value."""
    return context.translation.add_value(value)


def make_sequence(context: OpContext, elements: Sequence[int]) -> int:
    """A sequence of values."""
    if len(elements) > LENGTH_MAX:
        raise Unsupported(f"a sequence of {len(elements)} elements: at most {LENGTH_MAX}")
    return add_value(context, KnownSequence(tuple(elements)))


def sequence_of(context: OpContext, value: int) -> KnownSequence | RaggedSequence:
    """A sequence."""
    found = value_of(context, value)
    if not isinstance(found, (KnownSequence, RaggedSequence)):
        raise OpTypeError("a sequence", named(context, value))
    return found


def is_sequence(context: OpContext, value: int) -> bool:
    """Whether a value is a sequence, perhaps an empty one."""
    return isinstance(value_of(context, value), (KnownSequence, RaggedSequence))


def parts_of(context: OpContext, value: int) -> tuple[int, ...]:
    """The tensors that a value is made of, in the order of its form."""
    match value_of(context, value):
        case None:
            return (value,)
        case KnownSequence(items):
            return tuple(part for item in items for part in parts_of(context, item))
        case RaggedSequence(data=data, shapes=shapes):
            return (*parts_of(context, data), shapes)
        case Shaped(data, shape):
            return (*parts_of(context, data), shape)
        case Strings(spans, pool):
            return (spans, pool)
        case Nothing():
            return ()
        case Maybe(inner, given):
            return (*parts_of(context, inner), given)


def named(context: OpContext, value: int) -> str:
    """What a value is, for messages."""
    names = {
        KnownSequence: "a sequence", RaggedSequence: "a sequence", Strings: "strings",
        Shaped: "a tensor whose number of dimensions only a run knows",
        Nothing: "an empty optional", Maybe: "an optional",
    }  # fmt: skip
    found = value_of(context, value)
    return str(context.type_of(value)) if found is None else names[type(found)]


def known_position(
    context: OpContext, value: int, count: int, *, to_end: bool = False
) -> int | None:
    """The element of a scalar that is a position in a sequence of ``count``, counted from the front;
    None where only a run knows it; ``to_end``: the end is one."""
    known = context.known_ints(value)
    if known is None:
        return None
    limit = count + to_end
    expected = f"a position in [-{count}, {limit})"
    require(len(known) == 1, "one position", len(known))
    require(-count <= known[0] < limit, expected, known[0])
    return known[0] + count if known[0] < 0 else known[0]
