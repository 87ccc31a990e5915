"""Suggests a known name for an unknown one.

In: a name, those that are known. Out: a sentence for an error. Not done here: errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def suggest(name: str, choices: Sequence[str]) -> str:
    """Say which known name was probably meant."""
    close = difflib.get_close_matches(name, choices, n=1)
    return f"did you mean {close[0]!r}?" if close else "choose one of these"
