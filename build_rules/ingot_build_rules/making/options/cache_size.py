"""Sizes of a cache as users write them: with a unit, or ``none`` for no limit.

In: a text. Out: bytes. Not done here: where the text comes from (``workspace.cache_folder``), other
sizes (``option_values``).
"""

from ingot_runtime.option_values import read_size

NO_LIMIT = 1 << 62


def read_cache_size(text: str) -> int | None:
    """Read a size that says its unit, or 0; None for what is none. ``5`` could be meant as GB, and
    5 bytes would empty the cache."""
    return None if text.strip().isdecimal() and int(text) else read_size(text)


def read_cache_max(text: str) -> int | None:
    """Read a limit; None for what is none."""
    return NO_LIMIT if text.strip() == "none" else read_cache_size(text)
