"""Errors in the words of Python: arguments where the command has options.

In: an error of any layer. Out: the same error. Not done here: raising it, names of nodes
(``ir.in_names``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

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
        return ARGUMENTS.get(piece.name, _plain(piece.name))(piece.value)
    if isinstance(piece, str):
        for option, argument in OPTIONS_IN_TEXTS.items():
            piece = piece.replace(option, argument)
    return piece


def _plain(option: str) -> Callable[[str], str]:
    """An argument of the option's own name."""
    argument = option.replace("-", "_")
    return lambda value: f"{argument}={value!r}" if value else argument


def _table(argument: str, separate: Callable[[str], tuple[str, str, str]]) -> Callable[[str], str]:
    """An argument that is a dict: of one entry, where the option has a value."""

    def written(value: str) -> str:
        name, equals, entry = separate(value)
        if not equals:
            return f"{argument}[{value!r}]" if value else argument
        return f"{argument}={{{name!r}: {entry!r}}}"

    return written


ARGUMENTS: dict[str, Callable[[str], str]] = {
    "check": lambda value: "check={'INPUT': array}" if value else "check",
    "device": _table("devices", lambda value: value.partition("=")),
    "op": _table("ops", lambda value: value.partition("=")),
    "place": _table("place", lambda value: value.rpartition("=")),
    "plugin": lambda value: f"plugins={value!r}" if value else "plugins",
    "pool": lambda value: f"pools={value!r}" if value else "pools",
    "shape": _table("shapes", lambda value: value.rpartition("=")),
    "target": lambda value: f"targets={value!r}" if value else "targets",
    "to": lambda stage: f"Bundle.text({stage!r})",
}
"""Option -> its value as an argument."""
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
