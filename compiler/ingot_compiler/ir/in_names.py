"""Puts the user's names into texts and errors: the one place where what later stages refer to by
number gets its name.

In: a text or an error with references, and the ``names`` artifact. Out: the same saying
``node '/layer1/conv' (Conv)`` and ``batch``. Not done here: which nodes compute a size that has no
name (``message.with_makers``), raising.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from ingot_compiler.ir.dims import format_dim_in_names
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.message import InputRef, NodeRef, OutputRef, Piece, Text, message
from ingot_compiler.ir.types import TensorType
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionClause, OptionRef

ErrorT = TypeVar("ErrorT", bound=IngotError)
_NAMELESS = (str, OptionRef, OptionClause)


def refers(error: IngotError) -> bool:
    """Whether anything in an error may have a name of the user's."""
    pieces = (piece for part in error.parts for piece in _pieces(part))
    return not all(isinstance(piece, _NAMELESS) for piece in pieces)


def error_in_names(error: ErrorT, names: Names) -> ErrorT:
    """``error`` in the user's names."""
    return with_pieces(error, lambda piece: _named(piece, names))


def with_pieces(error: ErrorT, change: Callable[[Piece], Piece]) -> ErrorT:
    """``error`` with every piece of its texts changed."""
    texts = [_pieces(part) for part in error.parts]
    return type(error)(*(message(*map(change, pieces)) for pieces in texts))


def _pieces(part: object) -> tuple[Piece, ...]:
    text = message(*cast("tuple[object, ...]", part)) if isinstance(part, tuple) else message(part)
    return (text,) if isinstance(text, str) else text.pieces


def text_in_names(text: Text, names: Names) -> str:
    """``text`` in the user's names."""
    if isinstance(text, str):
        return text
    return "".join(str(_named(piece, names)) for piece in text.pieces)


def type_in_names(described: TensorType, names: Names) -> str:
    """A type with the user's names of sizes: ``f32[batch, 32]``."""
    called = dict(names.symbols)
    sizes = ", ".join(format_dim_in_names(dim, called) for dim in described.shape)
    return f"{described.dtype}[{sizes}]"


def _named(piece: Piece, names: Names) -> str | OptionRef | OptionClause:
    if isinstance(piece, _NAMELESS):
        return piece
    if isinstance(piece, NodeRef):
        name, op = names.nodes[piece.ordinal]
        return f"node {name!r} ({op})"
    if isinstance(piece, InputRef):
        return f"input {names.inputs[piece.position]!r}"
    if isinstance(piece, OutputRef):
        return f"output {names.outputs[piece.position]!r}"
    return format_dim_in_names(piece, dict(names.symbols))
