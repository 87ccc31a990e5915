"""The options that name caches, for all verbs that use one.

In: a verb's parser. Out: its arguments. Not done here: which folder that is, and who may write to
it (``workspace.cache_folder``).
"""

from __future__ import annotations

import argparse


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add ``--cache``."""
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="the cache's folder (default: $INGOT_CACHE, $XDG_CACHE_HOME/ingot, ~/.cache/ingot)",
    )
    parser.add_argument(
        "--cache-shared",
        action="store_true",
        help="trust all who can write to the caches: by default they must be yours alone",
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
    parser.add_argument(
        "--read-only", action="store_true", help="take results from the cache, leave none there"
    )
