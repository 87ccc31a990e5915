"""What a verb takes, as data: one source for the parser, ``--help``, manual pages and the
completion of the shell.

In: nothing. Out: ``Argument``, ``Option``, ``Example``, and the options that several verbs share.
Not done here: the arguments of each verb (``arguments``), reading values (``usage``), which options
go together (``compile_options``), what they mean.

A shell asks for completions whenever a key is pressed, so nothing here or in ``arguments`` imports
what takes milliseconds: these are named tuples instead of dataclasses.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ingot_build_rules.making.options.option_rows import DEFAULTS, ROWS, spelling


class Argument(NamedTuple):
    """A word without a name of its own. ``times`` is how often it comes, as in argparse: ``*``,
    ``+``, ``?``, or empty for once. ``kind`` is as for an option."""

    name: str
    metavar: str
    help: str
    kind: str = "text"
    times: str = ""
    choices: tuple[str, ...] = ()


class Option(NamedTuple):
    """One option: ``names`` are separated by blanks; without a ``metavar`` it is a flag.

    ``kind`` says what its values are: a name in ``usage.READERS``, which reads them, and perhaps in
    ``completion.KINDS``, which knows candidates. One that ``repeats`` gives the list of its values.
    ``suffix`` belongs to an option whose file may be left out: the next word is its value only if
    it ends so. ``destination`` is where the value goes if the name is a keyword of Python.
    """

    names: str
    help: str
    metavar: str = ""
    kind: str = "text"
    default: object = None
    choices: tuple[str, ...] = ()
    repeats: bool = False
    required: bool = False
    suffix: str = ""
    destination: str = ""

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return not (self.metavar or self.choices)


class Example(NamedTuple):
    """A command that can be copied, and what it does."""

    command: str
    says: str


class Takes(NamedTuple):
    """What a verb takes, and examples of it."""

    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]
    examples: tuple[Example, ...]


def compile_option(field: str) -> Option:
    """Return an option of a compilation as its row says it."""
    row = ROWS[field]
    default = row.words[0] if row.words else getattr(DEFAULTS, field, None)
    return Option(
        f"--{spelling(field)}",
        row.text,
        row.metavar,
        row.kind,
        None if row.value_type == "flag" or row.is_many else default,
        row.words,
        row.is_many,
    )


def attribute(field: str) -> str:
    """Return where the value of an option of a compilation is among the arguments."""
    return spelling(field).replace("-", "_")


def usable_cpu_count() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


BUNDLE = Argument("bundle", "BUNDLE", "an .ingot file", "bundle")
TARGETS = Argument(
    "words", "TARGET", "bundles, tests or output files (default: all)", "project-name", "*"
)

JSON = Option("--json", "print one JSON object instead of text")
DEBUG = Option("--debug", "show the traceback of an error")
QUIET = Option("-q --quiet", "no progress, no summary")
PLUGIN = compile_option("plugins")
JOBS = Option("-j --jobs", "processes at most (default: all processors)", "N", "jobs")
DIGEST = Option(
    "--digest",
    "refuse any bundle but the one with this root digest (64 hex digits, or 32 at least)",
    "D",
)
CALL_SHAPE = Option(
    "--shape",
    "sizes of an input in the place of --inputs, for dimensions that the bundle leaves open",
    "NAME=4x16",
    "shape",
    repeats=True,
)
VARIANT = Option("--variant", "the variant to run (default: the best that can)", "TARGET", "target")
BIND = Option("--device", "bind a virtual device", "NAME=KIND[:ID]", "device", repeats=True)
PROJECT = (
    Option("-C --folder", "the project's folder, or one below it", "DIR", "folder", "."),
    Option("--config", "override a value of ingot.toml", "PATH=VALUE", repeats=True),
)
"""Which project a verb is about."""
CACHE = (
    Option(
        "--cache",
        "the cache's folder (default: $INGOT_CACHE, $XDG_CACHE_HOME/ingot, ~/.cache/ingot)",
        "DIR",
        "folder",
    ),
    Option(
        "--cache-shared",
        "trust all who can write to the caches: by default they must be yours alone",
    ),
)
"""Which cache; ``workspace.cache_folder`` says what that means."""
CACHES = (
    *CACHE,
    Option(
        "--cache-below",
        "a cache that is only read, below the first one",
        "DIR",
        "folder",
        repeats=True,
    ),
    Option("--read-only", "take results from the cache, leave none there"),
    Option(
        "--cache-max",
        "what the cache may take, such as 50GB, or none (default: $INGOT_CACHE_MAX, 20GB and no "
        "more than it leaves free)",
        "SIZE",
        "cache-max",
    ),
)
"""The options of a cache that a build has: those of every cache, caches below it, whether anything
is left in it, and how large it may be."""
