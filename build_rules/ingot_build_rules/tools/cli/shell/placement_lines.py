"""The line that says how much runs where, wherever there is more than the host.

In: what ``report.placement_report`` describes. Out: lines. Not done here: why (``ingot
why-device``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingot_build_rules.tools.cli.shell.console import format_bytes


def placement_lines(placement: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each version of the model: of each device its nodes and its share of all
    operations, of each pair of devices the bytes that cross in a call."""
    return [f"  placed{_sizes(version)}: {_line(version)}" for version in placement]


def _sizes(version: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in version["sizes"])
    return f" for {sizes}" if sizes else ""


def _line(version: Mapping[str, Any]) -> str:
    total = sum(device["operation_count"] for device in version["devices"])
    devices = [
        f"{device['name']} {_counted(device['node_count'])}, "
        f"{_percent(device['operation_count'], total)} of operations"
        for device in version["devices"]
    ]
    copies = [
        f"{copy['source']} to {copy['destination']} {format_bytes(copy['size_bytes'])}"
        for copy in version["copies"]
    ]
    return "; ".join([*devices, *(["copies " + ", ".join(copies)] if copies else ["no copies"])])


def _counted(count: int) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'}"


def _percent(part: int, total: int) -> str:
    if not total:
        return "0 %"
    share = 100 * part / total
    return "< 0.1 %" if 0 < share < 0.1 else f"{share:.3g} %"
