"""Arguments of the command line, with errors in four parts and suggestions for misspelled names.

In: argument texts. Out: parsed values. Not done here: verbs, rendering of errors.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from ingot_build_rules.making.options.cache_size import read_cache_max, read_cache_size
from ingot_build_rules.tools.cli.shell import options
from ingot_build_rules.tools.cli.shell.options import Argument, Option
from ingot_build_rules.tools.cli.shell.verbs import Verb, examples_text
from ingot_compiler.ir.errors import UserError
from ingot_runtime.option_values import size_bytes

Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """An argument parser of data, which raises ``UserError`` instead of printing and leaving."""

    def __init__(self, verb: Verb) -> None:
        super().__init__(
            prog=f"ingot {verb.name}",
            description=verb.summary,
            epilog=examples_text(verb.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            exit_on_error=False,
        )
        self._verb = verb
        self._suffixes = {
            name: option.suffix
            for option in verb.options
            if option.suffix
            for name in option.names.split()
        }
        for argument in verb.arguments:
            self._add_argument(argument)
        for option in verb.options:
            self._add_option(option)

    def _add_argument(self, argument: Argument) -> None:
        self.add_argument(
            argument.name,
            metavar=argument.metavar,
            help=argument.help,
            type=READERS.get(argument.kind, str),
            choices=argument.choices or None,
            nargs=argument.times or None,
        )

    def _add_option(self, option: Option) -> None:
        names = option.names.split()
        if option.is_flag:
            self.add_argument(*names, action="store_true", help=option.help)
            return
        # The value of an option whose file is left out is empty; None is the option left out.
        settings: dict[str, Any] = {"nargs": "?", "const": ""} if option.suffix else {}
        if option.destination:
            settings["dest"] = option.destination
        self.add_argument(
            *names,
            action="append" if option.repeats else "store",
            default=_default(option),
            type=READERS.get(option.kind, str),
            choices=option.choices or None,
            metavar=option.metavar or None,
            required=option.required,
            help=option.help,
            **settings,
        )

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse all of ``arguments``.

        Raises:
            UserError: an unknown option (with a suggestion), a missing or a malformed value.
        """
        try:
            found, rest = self.parse_known_args([*self._joined(arguments)])
        except argparse.ArgumentError as error:
            if error.argument_name is None:
                self.error(error.message)
            raise self._wrong(f"wrong value of {error.argument_name}", error.message) from None
        if rest:
            raise self._unexpected(rest[0])
        return found

    def _joined(self, arguments: Sequence[str]) -> Iterator[str]:
        """Close every optional file's option off from a word that is not for it."""
        for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
            suffix = self._suffixes.get(word)
            yield word if suffix is None or after.endswith(suffix) else f"{word}="

    def error(self, message: str) -> NoReturn:
        """Refuse what argparse finds wrong with no argument in particular."""
        raise self._wrong("wrong arguments", message)

    def _wrong(self, what: str, why: str) -> UserError:
        return UserError(what, where=f"command {self.prog}", why=why, do=f"see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is none of an option's choices, with a suggestion (argparse calls
        this for each value)."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        close = difflib.get_close_matches(str(value), choices, n=1)
        raise UserError(
            f"wrong value of {'/'.join(action.option_strings) or action.dest}",
            where=f"command {self.prog}",
            why=f"expected one of {', '.join(choices)}, got {value!r}",
            do=f"did you mean {close[0]!r}?" if close else f"see {self.prog} --help",
        )

    def _unexpected(self, text: str) -> UserError:
        if not text.startswith("-"):
            return UserError(
                f"unexpected argument {text!r}",
                where=f"command {self.prog}",
                why="every argument that it takes is given already",
                do=f"see {self.prog} --help",
            )
        from ingot_build_rules.tools.cli.shell.suggestions import suggest_option

        option = text.split("=", 1)[0]
        long_names = [
            name
            for each in self._verb.options
            for name in each.names.split()
            if name.startswith("--")
        ]
        return UserError(
            f"unknown option {option!r}",
            where=f"command {self.prog}",
            why=f"expected one of {', '.join(sorted(['--help', *long_names]))}",
            do=suggest_option(option, self._verb),
        )


def pair(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``; the last ``=`` counts, since node names may contain one."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def place(text: str) -> tuple[str, str]:
    """Read ``GLOB=NAME``; ``auto`` alone is for all nodes that no glob places."""
    glob, equals, name = text.rpartition("=")
    if text != "auto" and not (glob and equals and name):
        raise argparse.ArgumentTypeError(f"expected GLOB=DEVICE or auto, got {text!r}")
    return ("", text) if text == "auto" else (glob, name)


def device(text: str) -> tuple[str, str]:
    """Read ``NAME=KIND...``; the first ``=`` counts, since what follows has its own."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"expected NAME=KIND, got {text!r}")
    return name, value


def shape(text: str) -> tuple[str, str]:
    """Read ``NAME=1x3x224x224``, ``NAME=?x1..8``; ``NAME=scalar`` is rank 0."""
    from ingot_compiler.ir.sizes.given_shape import shape_text

    name, value = pair(text)
    try:
        return name, shape_text(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """Read a whole number above 0."""
    if not (text.isdecimal() and text.isascii()) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Read a duration above 0 in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return value


def profiles(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Make profiles of the pairs of ``--shape``: the second shape of an input begins another."""
    found: list[dict[str, str]] = []
    for name, value in pairs:
        if not found or name in found[-1]:
            found.append({})
        found[-1][name] = value
    return found


def unique(pairs: Sequence[tuple[str, Value]], option: str) -> dict[str, Value]:
    """Make a table of the pairs of an option.

    Raises:
        UserError: a name twice.
    """
    table: dict[str, Value] = {}
    for name, value in pairs:
        if name in table:
            what, why = (
                f"{name!r} is given twice",
                f"expected one value, got {table[name]!r} and {value!r}",
            )
            raise UserError(what, f"option {option}", why, "leave one of them out")
        table[name] = value
    return table


def share(text: str) -> float:
    """Read a share from 0 to 1: ``0.02``, ``2%``."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a share such as 0.02 or 2%, got {text!r}")
    return value


def cache_size(text: str) -> int:
    """Read a size of a cache, which says its unit."""
    return _required(read_cache_size(text), "a size with its unit such as 5GB, 500MB or 2GiB", text)


def cache_max(text: str) -> int:
    """Read what a cache may take: ``20GB``, ``none``."""
    return _required(read_cache_max(text), "a size with its unit such as 20GB, or none", text)


def _required(found: int | None, expected: str, text: str) -> int:
    if found is None:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return found


def _default(option: Option) -> object:
    if option.kind == "jobs":
        return options.usable_cpu_count()
    return [] if option.repeats else option.default


READERS: dict[str, Callable[[str], object]] = {
    "cache-max": cache_max,
    "cache-size": cache_size,
    "count": positive,
    "device": device,
    "jobs": positive,
    "pair": pair,
    "place": place,
    "seconds": seconds,
    "shape": shape,
    "share": share,
    "size": size_bytes,
}
"""Kind of a value -> what reads it; the text of any other kind is the value."""
