"""Runs a command of either command line in this process.

In: words. Out: its exit code, and the error that it printed. Not done here: files.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

import pytest

from ingot_build_rules.tools.cli import main
from ingot_build_rules.tools.cli.shell import console
from ingot_runtime import command as runtime
from ingot_runtime.ingot_error import IngotError


def run_command(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, IngotError | None]:
    """Run ``ingot ...`` or ``python -m ingot_runtime ...``."""
    told: list[IngotError] = []

    def render(error: IngotError) -> str:
        told.append(error)
        return ""

    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(console, "print_error", told.append)
        patch.setattr(runtime, "render", render)
        try:
            ours = words[0] == "ingot"
            code = main.main(words[1:]) if ours else runtime.main([*words[3:]])
        except SystemExit as ended:  # ``--help``
            code = int(ended.code or 0)
    return code, told[0] if told else None
