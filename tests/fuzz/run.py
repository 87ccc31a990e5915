"""Command: ``python tests/fuzz/run.py --count 20000 --seed 0 --workers 2``: random models, every
difference is a failure.

In: a range of seeds. Out: a report; a reproducer (.onnx, .txt) for each failure with ``--out``,
smaller with ``--reduce``. Not done here: making and checking one model (``generate``, ``check``).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # started as a file: test helpers are imported as tests.*

from tests.conformance.workers import Result, run_forked  # noqa: E402
from tests.fuzz.check import TARGETS, check_programs  # noqa: E402
from tests.fuzz.generate import generate  # noqa: E402
from tests.fuzz.shrink import write_reproducer  # noqa: E402

BATCH = 8  # programs in one bundle
LIMIT_SECONDS = 120.0
_VM_EVERY = 4


def check_seeds(seeds: Sequence[int]) -> Result:
    """Generate and check; the verdicts by seed."""
    programs = [generate(seed) for seed in seeds]
    position = seeds[0] // BATCH
    verdicts = check_programs(
        programs, seeds, TARGETS[position % len(TARGETS)], vm=position % _VM_EVERY == 0
    )
    return {
        "category": "done",
        "verdicts": [
            [seed, verdict.kind, verdict.detail, verdict.calls]
            for seed, verdict in zip(seeds, verdicts, strict=True)
        ],
    }


def _work(task: str) -> Result:
    first, count = map(int, task.split())
    return check_seeds(range(first, first + count))


def run_seeds(tasks: Iterable[str], workers: int) -> list[tuple[int, str, str, int]]:
    """(seed, kind, detail, calls) of every seed; a batch that crashes or hangs is run again one by
    one."""
    results: list[tuple[int, str, str, int]] = []
    again: list[str] = []
    for task, result in run_forked(list(tasks), _work, workers, LIMIT_SECONDS):
        for seed, kind, detail, _ in result.get("verdicts", []):
            if kind not in ("agrees", "refused"):
                print(f"seed {seed}: {kind}: {detail}", flush=True)
        first, count = map(int, task.split())
        if result["category"] == "done":
            results += [
                (seed, kind, detail, calls) for seed, kind, detail, calls in result["verdicts"]
            ]
        elif count > 1:
            again += [f"{seed} 1" for seed in range(first, first + count)]
        else:
            results.append((first, result["category"], result["detail"], 0))
    return results + (run_seeds(again, workers) if again else [])


def main(arguments: Sequence[str]) -> int:
    """Run; exit 0 when nothing differs, crashes or goes wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--out", help="a folder for reproducers")
    parser.add_argument(
        "--reduce", action="store_true", help="make the reproducers as small as possible first"
    )
    parser.add_argument("--json", help="write what was not equal here")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    firsts = range(options.seed, options.seed + options.count, options.batch)
    tasks = [
        f"{first} {min(options.batch, options.seed + options.count - first)}" for first in firsts
    ]
    results = sorted(run_seeds(tasks, options.workers))
    seconds = time.monotonic() - started
    counts = collections.Counter(kind for _, kind, _, _ in results)
    calls = sum(calls for _, _, _, calls in results)
    print(
        f"{len(results)} graphs, {calls} calls compared, {seconds:.0f} s, {len(results) / seconds:.1f} graphs/s: ",
        end="",
    )
    print(", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
    bad = [
        (seed, kind, detail)
        for seed, kind, detail, _ in results
        if kind not in ("agrees", "refused")
    ]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                [(seed, kind, detail) for seed, kind, detail, _ in results if kind != "agrees"],
                file,
                indent=1,
            )
    for seed, kind, detail in bad:
        if kind == "crash":
            print(f"seed {seed}: {kind}: {detail}")
        if options.out:
            write_reproducer(
                seed, kind, detail, options.out, shrink=options.reduce, target=_target(seed)
            )
    return 1 if bad else 0


def _target(seed: int) -> str:
    return TARGETS[seed // BATCH % len(TARGETS)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
