"""What the command prints: errors in four parts, JSON lines, aligned columns.

In: errors and values. Out: text on the standard streams. Not done here: progress (``progress``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Protocol

REPORT_AT = "report it with the command and the model"


class FourParts(Protocol):
    """An error of the compiler or of the loader; both trees have the same shape."""

    what: str
    where: str
    why: str
    do: str


def print_error(error: FourParts) -> None:
    """Print one error to standard error; empty parts are left out."""
    lines = [f"error: {error.what}"]
    for label in ("where", "why", "do"):
        text: str = getattr(error, label)
        if text:
            lines.append(f"  {label}: {text}")
    print("\n".join(lines), file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """Print one value as one line of JSON."""
    print(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def format_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Align columns by two spaces; columns whose number is in ``right`` are aligned to the right."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


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
