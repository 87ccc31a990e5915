"""Command: run backend cases of the ``onnx`` package and report;
``python tests/conformance/run.py --help``.

In: kinds, patterns. Out: a report, ``--json`` results, ``--write-coverage`` docs/coverage.md,
``--prune`` a shorter list of known failures. Not done here: judging (``test_backend_cases``).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # started as a file: test helpers are imported as tests.*

from tests.c_loader import library  # noqa: E402
from tests.conformance import coverage, known_failures  # noqa: E402
from tests.conformance.cases import KINDS, Case, collect  # noqa: E402
from tests.conformance.run_case import CATEGORIES, SAME_IN_C, Outcome, run_case  # noqa: E402
from tests.conformance.workers import Result, run_forked  # noqa: E402
from tests.ptx.fake_driver import installed  # noqa: E402

LIMIT_SECONDS = 60.0


def run_all(
    cases: Mapping[str, Case],
    workers: int = 2,
    limit_seconds: float = LIMIT_SECONDS,
    device: str = "",
    *,
    in_c: bool = False,
) -> dict[str, Outcome]:
    """Run ``cases`` in forked processes, on ``device`` where one is given, ``in_c`` by the loader
    in C, too; return the outcomes sorted by name."""
    if in_c:
        library()  # once for all workers

    def work(name: str) -> Result:
        outcome = run_case(cases[name], device, in_c=in_c)
        return {"category": outcome.category, "detail": outcome.detail}

    done: dict[str, Outcome] = {}
    for name, result in run_forked(list(cases), work, workers, limit_seconds):
        done[name] = Outcome(result["category"], result["detail"])
    return dict(sorted(done.items()))


def sample(names: Iterable[str], count: int | None) -> list[str]:
    """Choose ``count`` names, the same on every machine, spread over all; all of them for None."""
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]
    return sorted(chosen)


def main(arguments: Sequence[str]) -> int:
    """Run; exit 0 when the known failures are exactly those that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument(
        "--modules", nargs="*", default=(), help="modules of node cases, all where not given"
    )
    parser.add_argument("--match", default="*", help="a pattern over KIND/NAME")
    parser.add_argument("--sample", type=int, help="run only so many, always the same")
    parser.add_argument("--device", default="", help="place every node there, such as opencl")
    parser.add_argument(
        "--real-driver",
        action="store_true",
        help="cuda is a GPU, not a program that stands for one",
    )
    parser.add_argument(
        "--in-c", action="store_true", help="the loader in C must give the same bits"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", help="write {name: [category, detail]} here")
    parser.add_argument(
        "--write-coverage", action="store_true", help="write docs/coverage.md (needs all cases)"
    )
    parser.add_argument(
        "--check-coverage", action="store_true", help="docs/coverage.md must say what was found"
    )
    parser.add_argument(
        "--prune", action="store_true", help="drop what passes from known_failures.txt"
    )
    options = parser.parse_args(arguments)
    started = time.monotonic()
    cases = {
        name: case
        for name, case in collect(options.kinds, options.modules).items()
        if fnmatch.fnmatchcase(name, options.match)
    }
    cases = {name: cases[name] for name in sample(cases, options.sample)}
    with contextlib.nullcontext() if options.real_driver else installed():
        outcomes = run_all(cases, options.workers, device=options.device, in_c=options.in_c)
    counts = collections.Counter(outcome.category for outcome in outcomes.values())
    print(f"{len(outcomes)} cases, {time.monotonic() - started:.0f} s: ", end="")
    print(", ".join(f"{category} {counts[category]}" for category in CATEGORIES))
    if options.in_c:
        same = sum(outcome.detail == SAME_IN_C for outcome in outcomes.values())
        print(f"{same} of them with the same bits by the loader in C")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {name: [outcome.category, outcome.detail] for name, outcome in outcomes.items()},
                file,
                indent=1,
            )
    if options.prune:
        known_failures.prune(outcomes)
    if options.write_coverage:
        coverage.write(cases, outcomes)
    problems = known_failures.compare(outcomes, device=options.device)
    if options.check_coverage and not coverage.is_current(cases, outcomes):
        problems.append("docs/coverage.md says something else: write it with --write-coverage")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
