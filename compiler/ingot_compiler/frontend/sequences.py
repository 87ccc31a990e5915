"""Sequences and optionals while a model is translated: what they hold is known then.

In: value ids of tensors. Out: value ids that stand for several tensors, or for none. Not done here:
sequences whose length only a run can tell (unsupported), the ops (``ops``).

Such a value has no node in the graph. Its id is below that of an absent result, so that no tensor
has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.ir.op_type_error import OpTypeError, require

LENGTH_MAX = 4096


def make_sequence(context: OpContext, elements: Sequence[int]) -> int:
    """A sequence of values."""
    if len(elements) > LENGTH_MAX:
        raise Unsupported(f"a sequence of {len(elements)} elements: at most {LENGTH_MAX}")
    return context.translation.add_sequence(tuple(elements))


def make_empty_optional(context: OpContext) -> int:
    """An optional that holds nothing."""
    return context.translation.add_sequence(None)


def elements_of(context: OpContext, value: int) -> tuple[int, ...]:
    """The elements of a sequence."""
    elements = context.translation.sequences.get(value)
    if elements is None:
        raise OpTypeError(
            "a sequence", "an empty optional" if value < 0 else context.type_of(value)
        )
    return elements


def is_sequence(context: OpContext, value: int) -> bool:
    """Whether a value is a sequence, perhaps an empty one."""
    return context.translation.sequences.get(value) is not None


def is_empty_optional(context: OpContext, value: int) -> bool:
    """Whether a value is an optional that holds nothing."""
    return value in context.translation.sequences and not is_sequence(context, value)


def position_of(context: OpContext, value: int, count: int, *, to_end: bool = False) -> int:
    """The element of a scalar that is a position in a sequence of ``count``, counted from the
    front; ``to_end``: the end is one."""
    known = context.known_ints(value)
    if known is None:
        raise Unsupported("a position in a sequence that is known at run time only")
    limit = count + to_end
    expected = f"a position in [-{count}, {limit})"
    require(len(known) == 1, "one position", len(known))
    require(-count <= known[0] < limit, expected, known[0])
    return known[0] + count if known[0] < 0 else known[0]
