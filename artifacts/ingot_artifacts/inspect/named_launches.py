"""Launches of a bundle by what they compute, so that those of two bundles can be compared: a number
says only how many come before.

In: a bundle's description. Out: rows of its launches, rows of the model's versions, by name. Not
done here: comparing (``diff``).
"""

from collections.abc import Mapping
from itertools import repeat
from typing import Any

Rows = dict[str, Any]

_OTHER_SIZES = "any other sizes"


def launches_by_name(described: Mapping[str, Any]) -> Rows:
    """Return each launch by its target, the model's nodes that it runs, the sizes of the version it
    belongs to, and which one of these it is where there are several."""
    found: Rows = {}
    for target, rows in _launches(described).items():
        versions = _versions(described, target, len(rows))
        sizes = (text for text, row in versions.items() for text in repeat(text, row["launches"]))
        for row, text in zip(rows, sizes, strict=False):
            nodes = ", ".join(f"{name} ({op})" for name, op in row["nodes"]) or "no node"
            name = f"{target} {nodes}" + (f" for {text}" if text != _OTHER_SIZES else "")
            found[_free(name, found)] = row
    return found


def versions_by_name(described: Mapping[str, Any]) -> Rows:
    """Return what is told of each version of the model, by target and sizes."""
    return {
        f"{target} for {text}": row
        for target, rows in _launches(described).items()
        for text, row in _versions(described, target, len(rows)).items()
    }


def _launches(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    launches: dict[str, list[Any]] = described["debug"].get("launches", {})
    return launches


def _versions(described: Mapping[str, Any], target: str, launch_count: int) -> Rows:
    """The versions by their sizes, in the order of their launches."""
    versions = described["debug"].get("versions", {}).get(target)
    if versions is None:  # there is the general one alone
        return {_OTHER_SIZES: {"refused": False, "launches": launch_count}}
    return {
        ", ".join(f"{name} = {size}" for name, size in version["sizes"]) or _OTHER_SIZES: {
            name: version[name] for name in ("refused", "launches")
        }
        for version in versions
    }


def _free(name: str, taken: Rows) -> str:
    """Launches of one group run the same nodes."""
    numbered, number = name, 1
    while numbered in taken:
        number += 1
        numbered = f"{name}, launch {number}"
    return numbered
