"""Writes docs/coverage.md: which backend cases of the ``onnx`` package pass, by op.

In: cases and their outcomes. Out: the page. Not done here: running cases.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Mapping, Sequence

import onnx
from tests.conformance.cases import KINDS, Case
from tests.conformance.run_case import CATEGORIES, Outcome

from ingot_compiler.frontend.ops import microsoft

PATH = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "docs",
    "coverage.md",
)
_REASON_MAX = 140
_HEAD = """\
# Coverage

This page shows which backend test cases of the `onnx` package {version} pass. Each case is compiled to a saved bundle, run with only the
loader, and compared within the case's own tolerance. `python tests/conformance/run.py --write-coverage` writes this page.

*refused* means that the compiler reports node, op and reason (exit code 3). *wrong* means a result outside of the tolerance. *error* is any
other error. `tests/conformance/known_failures.txt` lists every case that does not pass, with its reason.
"""


_CONTRIB_HEAD = """\
## Ops of com.microsoft

The package has no cases for the ops of ONNX Runtime. `tests/contrib` compares these with numpy:
"""


def page(cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> str:
    """Return the whole page."""
    kinds: dict[str, list[Outcome]] = {kind: [] for kind in KINDS}
    domains: dict[str, dict[str, list[Outcome]]] = {"": {}}
    for name, outcome in outcomes.items():
        kinds[cases[name].kind].append(outcome)
        if cases[name].kind == "node":
            ops = domains.setdefault(cases[name].domain, {})
            ops.setdefault(cases[name].op, []).append(outcome)
    parts = [_HEAD.format(version=onnx.__version__), "## Totals\n", *_table("kind", kinds)]
    for domain, ops in sorted(domains.items()):
        heading = f"## Node cases of {domain} by op" if domain else "## Node cases by op"
        parts += [f"\n{heading}\n", *_table("op", dict(sorted(ops.items())), reasons=True)]
    parts += ["\n" + other_domains()]
    return "\n".join(parts) + "\n"


def other_domains() -> str:
    """The section of ops for which the package has no cases: which of them are translated."""
    return "\n".join([_CONTRIB_HEAD, *(f"- {name}" for name in sorted(microsoft.FILES))])


def write(cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> None:
    """Write the page."""
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(page(cases, outcomes))


def is_current(cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]) -> bool:
    """Whether the page on disk says this."""
    with open(PATH, encoding="utf-8") as file:
        return file.read() == page(cases, outcomes)


def _table(what: str, rows: Mapping[str, Sequence[Outcome]], *, reasons: bool = False) -> list[str]:
    head = [what, "cases", *CATEGORIES, *(["why not"] if reasons else [])]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name, outcomes in rows.items():
        counts = collections.Counter(outcome.category for outcome in outcomes)
        cells = [
            name,
            str(len(outcomes)),
            *(str(counts[category] or "") for category in CATEGORIES),
        ]
        lines.append(f"| {' | '.join([*cells, *([_reason(outcomes)] if reasons else [])])} |")
    return lines


def _reason(outcomes: Sequence[Outcome]) -> str:
    """Name the most frequent reason."""
    reasons = collections.Counter(
        reason_of(outcome) for outcome in outcomes if outcome.category != "pass"
    )
    return (
        min(reasons.items(), key=lambda item: (-item[1], item[0]))[0].replace("|", "/")
        if reasons
        else ""
    )


def reason_of(outcome: Outcome) -> str:
    """Shorten a detail to what cases have in common: no names of nodes, no opsets, no numbers of
    elements."""
    if outcome.category != "refused":
        return outcome.detail.split(";")[0][:_REASON_MAX]
    first = outcome.detail.split(" | ")[0]
    reason = re.sub(r"^(node|input|output|tensor|value|initializer) '[^']*'[^:]*: ", "", first)
    reason = re.sub(
        r"^(op \w+), domain ([\w.]+), opset \d+(, dtype \w+)?", r"\1 (\2)", reason
    ).replace(" (ai.onnx):", ":")
    return reason[:_REASON_MAX]
