"""Errors in the words of Python: arguments where the command has options.

In: an error of any layer. Out: the same error. Not done here: raising it, names of nodes
(``ir.in_names``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from ingot_build_rules.rules.option_rows import FIELDS, ROWS
from ingot_compiler.ir.in_names import ErrorT, with_pieces
from ingot_compiler.ir.message import OptionRef, Piece
from ingot_runtime.ingot_error import IngotError


@contextmanager
def errors_in_arguments() -> Generator[None]:
    """Let no error speak of an option of the command."""
    try:
        yield
    except IngotError as error:
        told = in_arguments(error)
        if told is error:
            raise
        # The traceback shows no other error: it would speak of options.
        raise told.with_traceback(error.__traceback__) from None


def in_arguments(error: ErrorT) -> ErrorT:
    """The error in the words of arguments; itself if there is nothing to change."""
    told = with_pieces(error, _piece_in_arguments)
    return error if list(map(str, told.parts)) == list(map(str, error.parts)) else told


def _piece_in_arguments(piece: Piece) -> Piece:
    if isinstance(piece, OptionRef):
        return _as_argument(piece)
    if isinstance(piece, str):
        for option, argument in OPTIONS_IN_TEXTS.items():
            piece = piece.replace(option, argument)
    return piece


def _as_argument(option: OptionRef) -> str:
    name, value = option.name, option.value
    if name in WRITTEN:
        return WRITTEN[name](value)
    field = FIELDS.get(name, name.replace("-", "_"))
    form = ROWS[field].form if field in ROWS else "text"
    if not value:
        return field
    if form not in ("pairs", "places", "shapes"):
        return f"{field}={value!r}"
    # A glob and an input may contain "="; what is said of a device or an op has its own.
    key, equals, entry = value.partition("=") if form == "pairs" else value.rpartition("=")
    return f"{field}={{{key!r}: {entry!r}}}" if equals else f"{field}[{value!r}]"


WRITTEN: dict[str, Callable[[str], str]] = {
    "check": lambda value: "check={'INPUT': array}" if value else "check",
    "to": lambda stage: f"Bundle.text({stage!r})",
}
"""Options whose values are others in Python."""
OPTIONS_IN_TEXTS = {
    "(--cache DIR)": "(cache=DIR)",
    "(--cache-shared)": "(cache_shared=True)",
    "(--allow-outside)": "(allow_outside=True)",
    "or choose another --cache": "or choose another cache",
    "name another folder for the cache, or use this one for reading alone (--read-only)": (
        "name another folder for the cache (cache=DIR)"
    ),
    "build without --frozen to accept it": "build without frozen to accept it",
    "use fewer processes (-j 1)": "use fewer processes (workers=1, jobs=1)",
    "repeat it with --debug and report it": "report it with the model",
}
"""In texts of layers below the compiler, which refer to nothing; they are ours, word for word."""
