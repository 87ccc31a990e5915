"""Whether a stream is a terminal that a person looks at, where lines may be bold and move: the
one place that reads the environment for it.

In: a stream. Out: True or False. Not done here: what is shown there (``live_progress``).
"""

from __future__ import annotations

import os
from typing import TextIO

_NOT_SET = ("", "0", "false")
_PLAIN_TERMINALS = ("dumb", "unknown", "")


def is_live(stream: TextIO) -> bool:
    """Return whether lines on ``stream`` may be bold, or other than plain, and move.

    Not where it is a file or a pipe, not under ``TERM=dumb``, not if ``NO_COLOR`` is set, and
    not in a CI service, whose logs keep every byte: all of them set ``CI``.
    """
    if not stream.isatty() or os.environ.get("TERM", "") in _PLAIN_TERMINALS:
        return False
    in_service = os.environ.get("CI", "").lower() not in _NOT_SET
    return not (in_service or os.environ.get("NO_COLOR", ""))
