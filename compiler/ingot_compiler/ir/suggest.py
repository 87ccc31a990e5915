"""What a misspelled name may have meant.

In: a name and the known ones. Out: the nearest known name, or a sentence for an error. Not done here:
errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SIMILARITY_MIN = 0.6


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name nearest to ``name`` (equal but for case first), "" when none is near."""
    names = sorted(known)
    folded = {other.casefold(): other for other in reversed(names)}
    close = get_close_matches(name.casefold(), list(folded), 1, _SIMILARITY_MIN)
    return folded[close[0]] if close else ""


def suggest(name: str, choices: Iterable[str]) -> str:
    """Say which known name was probably meant."""
    close = nearest(name, choices)
    return f"did you mean {close!r}?" if close else "choose one of these"
