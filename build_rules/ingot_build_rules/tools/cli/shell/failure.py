"""A command that failed: its error for people, and with ``--json`` for programs.

In: an error, and what was found before it. Out: text on the standard streams, an exit code. Not
done here: catching errors (``main``).
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.in_four_parts import in_four_parts
from ingot_build_rules.tools.cli.shell.in_words_of_verb import in_words_of
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.json_output import error_values


class FailedCommand(Exception):
    """``error`` stops a command that has something to tell nevertheless: the ``values`` of its
    report, for ``--json``."""

    def __init__(self, error: IngotError, values: dict[str, Any]) -> None:
        super().__init__(error)
        self.error = error
        self.values = values


def print_failure(error: Exception, verb: str, *, as_json: bool) -> int:
    """Print an error of a verb to standard error, and the one object of ``--json`` to standard
    output; return the exit code."""
    failed = error if isinstance(error, FailedCommand) else None
    shown = failed.error if failed else in_four_parts(error, f"command ingot {verb}")
    shown = in_words_of(shown, verb)
    console.print_error(shown)
    if as_json:
        with suppress(OSError):  # perhaps that is what failed
            values = failed.values if failed else {}
            console.print_json({**values, "error": error_values(shown)})
            sys.stdout.flush()
    return shown.exit_code
