"""``ingot bench --roofline``: each launch beside what this machine can do.

In: a measured session. Out: a part of the verb's report and its lines. Not done here: times of
whole calls (``bench``), shares (``view.roofline``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.view.launch_rows import launch_rows
from ingot_build_rules.tools.view.measure import machine_limits
from ingot_build_rules.tools.view.report_subject import read_subject
from ingot_build_rules.tools.view.roofline import peak_share, roofline_rows

_NAMES_MAX = 60  # letters of a row


def roofline_report(
    bundle: str, variant: str, feed: Mapping[str, Any], seconds: Mapping[int, float], threads: int
) -> dict[str, Any]:
    """Measure the limits of the machine, and return each launch's share of them; ``seconds``: of
    launches by ordinal."""
    shapes = {name: array.shape for name, array in feed.items()}
    limits = machine_limits(threads)
    rows = roofline_rows(launch_rows(read_subject(bundle, variant, shapes), seconds), limits)
    return {"limits": asdict(limits), "peak_share": peak_share(rows), "launches": rows}


def roofline_lines(report: dict[str, Any], top: int) -> list[str]:
    """The limits, and a table of launches."""
    limits, share = report["limits"], report["peak_share"]
    operations = limits["operations_per_second"] / 1e9
    moved = limits["bytes_per_second"] / 1e9
    rows: list[Sequence[str]] = [
        ("time", "share", "of peak", "of bandwidth", "kind", "nodes"),
        *(_row(row) for row in report["launches"][:top]),
    ]
    reached = "" if share is None else f"; launches reach {share:.0%} of it, by their time"
    return [
        f"peak    {operations:.1f} GF/s of multiply-adds in registers, measured now{reached}",
        f"bytes   {moved:.1f} GB/s read and written by a copy, measured now",
        *console.format_table(rows, right=(0, 1, 2, 3)),
    ]


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    names = ", ".join(name for name, _ in row["nodes"])
    return (
        console.format_seconds(row["seconds"]),
        f"{100 * row['time_share']:.1f} %",
        _percent(row["peak_share"]),
        _percent(row["bandwidth_share"]),
        row["kind"],
        console.shortened(names, _NAMES_MAX),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
