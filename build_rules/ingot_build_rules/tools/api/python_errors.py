"""Errors in the words of Python: they name arguments where the command has options.

In: an error of any layer. Out: the same error. Not done here: raising it, names of nodes
(``ir.in_names``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from ingot_build_rules.making.options.export_rows import FIELDS_OF_OPTIONS
from ingot_build_rules.making.options.option_rows import FIELDS, ROWS, entry_parts
from ingot_compiler.ir.in_names import ErrorT, with_pieces
from ingot_compiler.ir.message import Piece
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionClause, OptionRef


@contextmanager
def raise_python_errors() -> Generator[None]:
    """Raise errors of the block in the words of Python: none names an option of the command."""
    try:
        yield
    except IngotError as error:
        changed = python_error(error)
        if changed is error:
            raise
        # The traceback shows no other error: it would speak of options.
        raise changed.with_traceback(error.__traceback__) from None


def python_error(error: ErrorT) -> ErrorT:
    """The error in the words of arguments; itself if there is nothing to change."""
    changed = with_pieces(error, _python_piece)
    return error if str(changed) == str(error) else changed


def _python_piece(piece: Piece) -> Piece:
    if isinstance(piece, OptionClause):
        if piece.option.name not in {*WRITTEN, *FIELDS, *FIELDS_OF_OPTIONS}:
            return piece.otherwise
        return piece.said.format(_as_argument(piece.option))
    return _as_argument(piece) if isinstance(piece, OptionRef) else piece


def _as_argument(option: OptionRef) -> str:
    name, value = option.name, option.value
    if name in WRITTEN:
        return WRITTEN[name](value)
    field = FIELDS.get(name) or FIELDS_OF_OPTIONS.get(name, "")
    value_type = ROWS[field].value_type if field in ROWS else "text"
    if not field:
        return str(option)
    if not value:
        return field
    if value_type not in ("pairs", "places", "shapes"):
        return f"{field}={value!r}"
    key, equals, entry = entry_parts(field, value)
    return f"{field}={{{key!r}: {entry!r}}}" if equals else f"{field}[{value!r}]"


WRITTEN: dict[str, Callable[[str], str]] = {
    "allow-outside": lambda _: "allow_outside=True",
    "cache": lambda folder: f"cache={folder}" if folder else "cache",
    "cache-shared": lambda _: "cache_shared=True",
    "check": lambda value: "check={'INPUT': array}" if value else "check",
    "config": lambda value: f"config {value}".rstrip(),
    "frozen": lambda _: "frozen",
    "j": lambda count: f"workers={count}, jobs={count}",
    "max-bytes": lambda _: "max_bytes",
    "to": lambda stage: f"Bundle.text({stage!r})" if stage else "Bundle.text",
}
"""What is said beside the options of a compilation, by those of functions that say it, too."""
