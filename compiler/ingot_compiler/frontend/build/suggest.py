"""What a misspelled name may have meant.

In: a name and the known ones. Out: the nearest known name. Not done here: wording of messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: str, known: Iterable[str]) -> str:
    """The known name nearest to ``name`` (equal but for case first), "" when none is near."""
    names = sorted(known)
    folded = {other.casefold(): other for other in reversed(names)}
    close = get_close_matches(name.casefold(), list(folded), 1, 0.6)
    return folded[close[0]] if close else ""
