"""Texts that refer to nodes, inputs, outputs and sizes of a model, which no stage after import
knows by name, and to options (``ingot_runtime.option_ref``).

In: pieces: texts, references, sizes, types of tensors. Out: ``Text``: a ``str`` if nothing in it
has a name of the user's, else a ``Message``. Not done here: the names (``in_names``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from ingot_compiler.ir.dims import Sum, symbols_of
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionClause, OptionRef


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node of the imported model, by its ordinal."""

    ordinal: int

    def __str__(self) -> str:
        return f"node #{self.ordinal}"


@dataclass(frozen=True, slots=True)
class InputRef:
    """An input of the model, by its position."""

    position: int

    def __str__(self) -> str:
        return f"input #{self.position}"


@dataclass(frozen=True, slots=True)
class OutputRef:
    """An output of the model, by its position."""

    position: int

    def __str__(self) -> str:
        return f"output #{self.position}"


Piece = str | NodeRef | InputRef | OutputRef | OptionRef | OptionClause | Sum
"""A ``Sum`` is a size: the user may have names for its symbols."""


@dataclass(frozen=True, slots=True)
class Message:
    """A text in pieces; ``str()`` is the text with numbers and symbols for names."""

    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))


Text = str | Message


def message(*parts: object) -> Text:
    """All parts one after the other: texts, references, sizes and types as they are; tuples and
    lists in brackets, item by item; of anything else its ``str()``."""
    pieces: list[Piece] = []
    for piece in _pieces(parts):
        if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += piece
        elif piece != "":
            pieces.append(piece)
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(map(str, pieces))
    return Message(tuple(pieces))


def joined(separator: str, parts: Iterable[object]) -> Text:
    """``separator.join(parts)``."""
    return message(*[item for part in parts for item in (separator, part)][1:])


def nodes_text(source: Sequence[int]) -> Text:
    """The nodes of these ordinals."""
    return joined(", ", map(NodeRef, source))


def with_makers(
    text: Text, makers: Mapping[str, Sequence[int]], count_max: int | None = None
) -> Text:
    """``text``, and which nodes compute the sizes in it that have no name; ``makers``: symbol ->
    their ordinals.

    ``count_max``: of sizes, and of nodes for each.
    """
    sizes = (
        [piece for piece in text.pieces if isinstance(piece, Sum)]
        if isinstance(text, Message)
        else []
    )
    computed = dict.fromkeys(
        name for size in sizes for name in symbols_of(size) if makers.get(name)
    )
    clauses = [
        message(name, " is computed by ", nodes_text(makers[name][:count_max]))
        for name in list(computed)[:count_max]
    ]
    return message(text, ", where ", joined(" and ", clauses)) if clauses else text


def _pieces(parts: Iterable[object]) -> Iterator[Piece]:
    for part in parts:
        if isinstance(part, Message):
            yield from part.pieces
        elif isinstance(part, Piece):
            yield part
        elif isinstance(part, TensorType):
            yield from _pieces((part.dtype, list(part.shape)))
        elif isinstance(part, tuple | list):
            yield from _bracketed(cast("Sequence[object]", part))
        else:
            yield str(part)


def _bracketed(items: Sequence[object]) -> Iterator[Piece]:
    opening, closing = (
        ("(", ",)" if len(items) == 1 else ")") if isinstance(items, tuple) else ("[", "]")
    )
    yield opening
    for position, item in enumerate(items):
        yield ", " if position else ""
        yield from _pieces((repr(item) if isinstance(item, str) else item,))
    yield closing


def within(text: str, size_bytes: int) -> str:
    """The beginning of a text that is too long, with dots behind it."""
    whole = text.encode(errors="surrogatepass")
    if len(whole) <= size_bytes:
        return text
    return whole[: size_bytes - 2].decode(errors="ignore") + ".."
