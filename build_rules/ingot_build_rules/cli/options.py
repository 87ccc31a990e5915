"""Options as data, and those that several verbs share.

In: a verb's parser, options. Out: its arguments. Not done here: reading values (``usage``), which
options go together (``compile_options``), what they mean.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass

from ingot_build_rules.cli import usage


@dataclass(frozen=True, slots=True)
class Option:
    """One option: ``names`` are separated by blanks; without a ``metavar`` it is a flag.

    ``read`` makes a value of the text. One that ``repeats`` gives the list of its values. ``help``
    is what ``--help`` says.
    """

    names: str
    help: str
    metavar: str = ""
    read: Callable[[str], object] = str
    default: object = None
    choices: tuple[str, ...] | None = None
    repeats: bool = False


def add_options(parser: argparse.ArgumentParser, *options: Option) -> None:
    """Declare options, in the order in which ``--help`` shows them."""
    for option in options:
        names = option.names.split()
        if not (option.metavar or option.choices):
            parser.add_argument(*names, action="store_true", help=option.help)
            continue
        parser.add_argument(
            *names,
            action="append" if option.repeats else "store",
            default=[] if option.repeats else option.default,
            type=option.read,
            choices=option.choices,
            metavar=option.metavar or None,
            help=option.help,
        )


def add_jobs(parser: argparse.ArgumentParser, *more_names: str) -> None:
    """Declare ``--jobs``; without it, all processors that this process may use."""
    names = " ".join(("-j --jobs", *more_names))
    count = usable_cpu_count()
    add_options(parser, Option(names, "processes at most", "N", usage.positive, default=count))


def usable_cpu_count() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


JSON = Option("--json", "print one JSON object instead of text")
DEBUG = Option("--debug", "show the traceback of an error")
QUIET = Option("-q --quiet", "no progress")
DIGEST = Option(
    "--digest",
    "refuse any bundle but the one with this root digest (64 hex digits, or 32 at least)",
    "D",
)
CALL_SHAPE = Option(
    "--shape",
    "sizes of an input in the place of --inputs, for dimensions that the bundle leaves open",
    "NAME=4x16",
    usage.shape,
    repeats=True,
)
VARIANT = Option("--variant", "the variant to run (default: the best that can)", "TARGET")
PROJECT = (
    Option("-C --folder", "the project's folder, or one below it", "DIR", default="."),
    Option("--config", "override a value of ingot.toml", "PATH=VALUE", repeats=True),
)
"""Which project a verb is about."""
CACHE = (
    Option(
        "--cache",
        "the cache's folder (default: $INGOT_CACHE, $XDG_CACHE_HOME/ingot, ~/.cache/ingot)",
        "DIR",
    ),
    Option(
        "--cache-shared",
        "trust all who can write to the caches: by default they must be yours alone",
    ),
)
"""Which cache; ``workspace.cache_folder`` says what that means."""
CACHES = (
    *CACHE,
    Option("--cache-below", "a cache that is only read, below the first one", "DIR", repeats=True),
    Option("--read-only", "take results from the cache, leave none there"),
)
"""The same, caches below it, and whether anything is left in it."""
