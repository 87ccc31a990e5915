"""Whether a stream is a terminal that a person looks at, and may get colour and moving lines: the
one place that reads the environment for it.

In: a stream. Out: True or False. Not done here: what is shown there (``live_progress``).
"""

from __future__ import annotations

import os
from typing import TextIO

_NOT_SET = ("", "0", "false")
_PLAIN_TERMINALS = ("dumb", "unknown", "")


def is_live(stream: TextIO) -> bool:
    """Return whether lines on ``stream`` may move and have colours.

    Not where it is a file or a pipe, not under ``TERM=dumb``, not if ``NO_COLOR`` is set
    (no-color.org), and not in a CI service, whose logs keep every byte: all of them set ``CI``.
    """
    if not stream.isatty() or os.environ.get("TERM", "") in _PLAIN_TERMINALS:
        return False
    in_service = os.environ.get("CI", "").lower() not in _NOT_SET
    return not (in_service or os.environ.get("NO_COLOR", ""))
