"""The list of cases that are known not to pass, each with its category and reason; it may only
shrink.

In: outcomes. Out: what contradicts the list. Not done here: running cases.

``known_failures.txt``: a line at the margin is ``CATEGORY: REASON`` and holds for the indented
names below it. ``known_failures_devices.txt``: what else does not pass with every node on a
device that is no processor: no such back end has control flow, and all have code for the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.conformance.run_case import CATEGORIES, Outcome

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_failures.txt")
DEVICES_PATH = PATH.replace(".txt", "_devices.txt")
_HEAD = """\
# Backend cases of the onnx package that do not pass, by category and reason. The list may only shrink: a listed case that
# passes and an unlisted one that fails are both errors. `python tests/conformance/run.py --prune` drops those that pass.
"""


def read(path: str = PATH) -> dict[str, tuple[str, str]]:
    """Return name -> (category, reason)."""
    known: dict[str, tuple[str, str]] = {}
    category, reason = "", ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if line[0] != " ":
                category, _, reason = text.partition(": ")
                assert category in CATEGORIES[1:], text
                assert reason, text
            else:
                assert text not in known, f"{text} is listed twice"
                known[text] = category, reason
    return known


def write(known: Mapping[str, tuple[str, str]], path: str = PATH) -> None:
    """Write the list, sorted."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(known):
        groups.setdefault(known[name], []).append(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(_HEAD)
        for (category, reason), names in sorted(groups.items()):
            file.write(f"\n{category}: {reason}\n")
            file.writelines(f"  {name}\n" for name in names)


def prune(outcomes: Mapping[str, Outcome], path: str = PATH) -> None:
    """Drop what passes now."""
    known = read(path)
    passing = {name for name, outcome in outcomes.items() if outcome.category == "pass"}
    write({name: entry for name, entry in known.items() if name not in passing}, path)


def compare(outcomes: Mapping[str, Outcome], path: str = PATH, device: str = "") -> list[str]:
    """Say, one line each, which outcome contradicts the list, or the two of a device."""
    known = read(path) | (read(DEVICES_PATH) if device else {})
    problems: list[str] = []
    for name, outcome in sorted(outcomes.items()):
        expected = known[name][0] if name in known else "pass"
        if outcome.category != expected:
            hint = (
                " (remove it from known_failures.txt)"
                if outcome.category == "pass"
                else f": {outcome.detail}"
            )
            problems.append(f"{name}: expected {expected}, got {outcome.category}{hint}")
    return problems
