"""Where the cache is: the one place that reads the environment for it.

In: what ``--cache`` says. Out: a folder. Not done here: making it (``ingot_artifacts.store.cache``).
"""

from __future__ import annotations

import argparse
import os


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add ``--cache``."""
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="the cache's folder (default: $INGOT_CACHE, $XDG_CACHE_HOME/ingot, ~/.cache/ingot)",
    )


def add_caches(parser: argparse.ArgumentParser) -> None:
    """Add ``--cache``, caches below it, and whether anything is left in it."""
    add_cache(parser)
    parser.add_argument(
        "--cache-below",
        action="append",
        default=[],
        metavar="DIR",
        help="a cache that is only read, below the first one",
    )
    parser.add_argument("--read-only", action="store_true", help="take results from the cache, leave none there")


def cache_folder(given: str | None = None) -> str:
    """Return the folder: what was given, else ``$INGOT_CACHE``, ``$XDG_CACHE_HOME/ingot``, ``~/.cache/ingot``."""
    named = given or os.environ.get("INGOT_CACHE")
    if named:
        return os.path.abspath(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is invalid and is ignored.
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "ingot")
