"""Launches of two bundles side by side, by the nodes of the model that they run.

In: rows of two reports. Out: one row per set of nodes that runs in either. Not done here: anything
else that differs (``ingot_artifacts.inspect.diff``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def compare_launches(before: Rows, after: Rows) -> list[dict[str, Any]]:
    """Return ``nodes``, and kernel and seconds of either side ("" and None where it has none).

    Several launches of the same nodes count in their order.
    """
    left, right = _by_nodes(before), _by_nodes(after)
    return [
        {
            "nodes": ", ".join(nodes),
            "before": left[nodes, number]["kernel"] if (nodes, number) in left else "",
            "after": right[nodes, number]["kernel"] if (nodes, number) in right else "",
            "before_seconds": left.get((nodes, number), {}).get("seconds"),
            "after_seconds": right.get((nodes, number), {}).get("seconds"),
        }
        for nodes, number in dict.fromkeys((*left, *right))
    ]


def _by_nodes(rows: Rows) -> dict[tuple[tuple[str, ...], int], Mapping[str, Any]]:
    found: dict[tuple[tuple[str, ...], int], Mapping[str, Any]] = {}
    for row in rows:
        nodes = tuple(name for name, _ in row["nodes"])
        number = 0
        while (nodes, number) in found:
            number += 1
        found[nodes, number] = row
    return found
