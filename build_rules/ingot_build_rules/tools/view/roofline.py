"""How near each launch is to what the machine can do: multiply-adds in registers, bytes of a copy.

In: rows of launches with their times (``launch_rows``), limits of the machine. Out: rows with
shares, the slowest first. Not done here: measuring (``measure``), counting (``kernel_costs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingot_build_rules.making.options.compile_options import HOST
from ingot_build_rules.tools.view.measure import MachineLimits


def roofline_rows(
    launches: Sequence[dict[str, Any]], limits: MachineLimits
) -> list[dict[str, Any]]:
    """Return a row for each launch that was timed. ``peak_share`` and ``bandwidth_share`` are what
    it reached of the limits; None on another device than the host, which they are not about, and
    where the loops of its kernel are unknown."""
    timed = [row for row in launches if row["seconds"]]
    total = sum(row["seconds"] for row in timed)
    rows = [
        {
            "launch": row["ordinal"],
            "kind": row["kind"],
            "device": row["device"],
            "seconds": row["seconds"],
            "time_share": row["seconds"] / total,
            "operations": row["operations"],
            "bytes": row["bytes"],
            "peak_share": _share(row, "operations", limits.operations_per_second),
            "bandwidth_share": _share(row, "bytes", limits.bytes_per_second),
            "nodes": row["nodes"],
        }
        for row in timed
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], row["launch"]))


def peak_share(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return what all launches with a share reached of the peak, by their time; None without any."""
    known = [row for row in rows if row["peak_share"] is not None]
    seconds = sum(row["seconds"] for row in known)
    return sum(row["peak_share"] * row["seconds"] for row in known) / seconds if known else None


def _share(row: dict[str, Any], count: str, per_second: float) -> float | None:
    if row[count] is None or row["device"] != HOST:
        return None
    return float(row[count] / row["seconds"] / per_second)
