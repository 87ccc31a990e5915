"""What the command prints: errors in four parts, JSON lines, aligned columns.

In: errors and values. Out: text on the standard streams. Not done here: progress (``progress``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from ingot_build_rules.tools.cli.shell.terminal import is_live
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.json_output import json_line
from ingot_runtime.printable import printable

REPORT_AT = "report it with the command and the model"


def print_error(error: IngotError) -> None:
    """Print one error to standard error; empty parts are left out."""
    print(f"error: {error}", file=sys.stderr, flush=True)


def print_lines(*lines: str, file: TextIO | None = None, flush: bool = False) -> None:
    """Print each text as one line, whatever names of other people's are in it: nothing there moves
    a cursor or ends a line."""
    print("\n".join(map(printable, lines)), file=file or sys.stdout, flush=flush)


def print_note(text: str) -> None:
    """Print a line to standard error that is not to be overlooked: bold on a terminal."""
    shown = printable(text)
    print(f"\x1b[1m{shown}\x1b[0m" if is_live(sys.stderr) else shown, file=sys.stderr, flush=True)


def print_listing(text: str) -> None:
    """Print a text of several lines with tabs between columns, as assembly has them."""
    print_lines(*text.expandtabs().split("\n"))


def print_json(values: dict[str, Any]) -> None:
    """Print the object of ``--json`` as one line."""
    print(json_line(values))


def print_report(values: dict[str, Any], lines: Sequence[str], *, as_json: bool) -> None:
    """Print a report: its values as one line of JSON, or its lines for people."""
    if as_json:
        print_json(values)
    elif lines:
        print_lines(*lines)


def format_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return lines with columns aligned by two spaces; columns whose number is in ``right`` are
    aligned to the right."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def counted(count: int, one: str) -> str:
    """Return a number of things: ``1 launch``, ``3 kernels``."""
    many = f"{one}es" if one.endswith("ch") else f"{one}s"
    return f"{count} {one if count == 1 else many}"


def shortened(text: str, length_max: int) -> str:
    """Return a text that takes no more room than this; ``...`` stands for the rest."""
    return text if len(text) <= length_max else f"{text[: length_max - 3]}..."


def format_bytes(size_bytes: int) -> str:
    """Format a size for people: ``102.6 MB``."""
    value = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def format_seconds(duration_seconds: float) -> str:
    """Format a duration for people: ``12.3 ms``."""
    if duration_seconds >= 1:
        return f"{duration_seconds:.2f} s"
    if duration_seconds >= 1e-3:
        return f"{duration_seconds * 1e3:.2f} ms"
    return f"{duration_seconds * 1e6:.1f} us"
