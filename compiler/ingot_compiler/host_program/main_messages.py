"""What ``main`` says when it refuses its inputs, within the length that a program's texts may have.

In: texts with references, the nodes that they are about. Out: the same as one text. Not done here:
names, the numbers of messages in a program (``main_assembler``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.dims import Sum
from ingot_compiler.ir.message import Piece, Text, message, nodes_text, with_makers

_LENGTH_MAX = 600  # characters, of up to 4 bytes
_NODES_NAMED_MAX = 100
_MAKERS_NAMED_MAX = 8


def of_nodes(what: Text, source: Sequence[int], makers: Mapping[str, Sequence[int]]) -> Text:
    """A message and the nodes that it is about; ``makers``: which nodes compute a symbol that is no
    size of an input.

    A long expression is cut, and a long list: a program's texts have a limit.
    """
    more = (f", {len(source) - _NODES_NAMED_MAX} more",) if len(source) > _NODES_NAMED_MAX else ()
    nodes = message(" (", nodes_text(source[:_NODES_NAMED_MAX]), *more, ")") if source else ""
    return with_makers(message(cut(what), nodes), makers, _MAKERS_NAMED_MAX)


def cut(text: Text) -> Text:
    """Cut a text to the length that a program may hold."""
    limit = _LENGTH_MAX
    if len(str(text)) <= limit:
        return text
    kept: list[Piece] = []
    for piece in (text,) if isinstance(text, str) else text.pieces:
        if len(str(piece)) > limit:
            return message(
                *kept,
                _first_terms(piece, limit) if isinstance(piece, Sum) else str(piece)[:limit],
                "...",
            )
        kept.append(piece)
        limit -= len(str(piece))
    return message(*kept)


def _first_terms(size: Sum, limit: int) -> Piece:
    """The first terms of an expression, as many as fit; if none does, the beginning of its text."""
    count = sum(len(str(Sum(size.terms[:end]))) <= limit for end in range(1, len(size.terms)))
    return Sum(size.terms[:count]) if count else str(size)[:limit]
