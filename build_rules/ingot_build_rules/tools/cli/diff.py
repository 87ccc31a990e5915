"""Verb ``diff``: what differs between two bundles.

In: two bundles. Out: one line per difference, or ``equal``; with ``--json`` every difference as
data. Not done here: comparison (``ingot_artifacts``).
"""

from __future__ import annotations

import argparse

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console

_WIDTH_MAX = 240


def shorten(line: str) -> str:
    """Cut a long value in its middle."""
    return (
        line
        if len(line) <= _WIDTH_MAX
        else f"{line[: _WIDTH_MAX // 2]} ... {line[-_WIDTH_MAX // 2 :]}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; the exit code is 0 also when there are some, as of every verb that
    reports."""
    from ingot_artifacts.inspect.diff import compare_bundles, difference_lines

    check_bundle_kind(arguments.first)
    check_bundle_kind(arguments.second)
    compared = compare_bundles(arguments.first, arguments.second)
    lines = [shorten(line) for line in difference_lines(compared)] or ["equal"]
    console.print_report(compared, lines, as_json=arguments.json)
    return 0
