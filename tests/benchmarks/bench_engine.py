"""What the engine costs: milliseconds per action that runs and per hit, seconds until Ctrl-C and
until a dead builder's action.

In: nothing, or a folder to work in. Out: one line per number with its limit; status 1 if one is
above. Not done here: what the store costs by itself (``bench_store``), rules that do anything.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import take_page_option, write_section  # noqa: E402
from tests.hostile.engine_harness import Plan, finish, read_log, start_builder, wait_for  # noqa: E402

from ingot_artifacts.store.cache import Cache  # noqa: E402
from ingot_build_rules.engine.actions.artifact import Artifact  # noqa: E402
from ingot_build_rules.engine.actions.codec import Codec  # noqa: E402
from ingot_build_rules.engine.actions.key import KeyMaker  # noqa: E402
from ingot_build_rules.engine.actions.rule import Rule, Rulebook, RuleContext  # noqa: E402
from ingot_build_rules.engine.actions.values import Values  # noqa: E402
from ingot_build_rules.engine.cache.action_cache import ActionCache  # noqa: E402
from ingot_build_rules.engine.cache.file_digests import DiskFiles  # noqa: E402
from ingot_build_rules.engine.executors.executor import InlineExecutor  # noqa: E402
from ingot_build_rules.engine.scheduler import Scheduler  # noqa: E402

ROUNDS = 3
ACTIONS = 10_000
HITS = 1000


@dataclass(frozen=True, slots=True)
class Number:
    """What the rules get."""

    value: int


def _plain(_: RuleContext, inputs: Number) -> int:
    return inputs.value + 1


def _kept(context: RuleContext, inputs: Number) -> Artifact[int]:
    return context.keep(inputs.value + 1)


PLAIN: Rule[Number, int] = Rule("plain", 1, ("value",), _plain)
KEPT: Rule[Number, Artifact[int]] = Rule("kept", 1, ("value",), _kept)
BOOK = Rulebook("", (PLAIN, KEPT), {"Number": __name__}, ())


def build(folder: str, rule: Rule[Number, Any], count: int) -> tuple[float, int]:
    """Ask for so many results; return the seconds that it took, opening and closing not counted,
    and how many actions ran."""
    cache = Cache(folder)
    values = Values(cache.blobs, Codec(BOOK.types))
    scheduler = Scheduler(
        BOOK, values, InlineExecutor(BOOK, values), ActionCache(cache.index, cache.blobs), cache.leases, DiskFiles(None),
        KeyMaker(lambda _: "", lambda _: ""),
    )  # fmt: skip
    started = time.perf_counter()
    scheduler.run(scheduler.need_all(rule, [Number(value) for value in range(count)]))
    seconds = time.perf_counter() - started
    cache.close()
    return seconds, scheduler.counts[rule.name].ran


def runs(folder: str, rule: Rule[Number, Any]) -> float:
    """Milliseconds per action that runs."""
    seconds, ran = build(tempfile.mkdtemp(dir=folder), rule, ACTIONS)
    assert ran == ACTIONS
    return seconds / ACTIONS * 1e3


def hits(folder: str, rule: Rule[Number, Any]) -> float:
    """Seconds for 1,000 results that are there already."""
    cache = tempfile.mkdtemp(dir=folder)
    build(cache, rule, HITS)
    seconds, ran = build(cache, rule, HITS)
    assert ran == 0
    return seconds


def interrupt(folder: str) -> float:
    """Seconds from Ctrl-C until a builder with two busy workers is gone."""
    inside = Path(tempfile.mkdtemp(dir=folder))
    builder = start_builder(
        Plan(str(inside / "cache"), [list(range(4))], str(inside / "log"), 2, 60, "each")
    )
    wait_for(lambda: len(read_log(inside / "log")) == 2)
    os.kill(builder.pid, signal.SIGINT)
    seconds = wait_for(lambda: builder.poll() is not None)
    finish(builder)
    return seconds


def take_over(folder: str) -> float:
    """Seconds from the death of a builder until another one, which waits for its action, runs
    it."""
    inside = Path(tempfile.mkdtemp(dir=folder))
    cache, log = str(inside / "cache"), str(inside / "log")
    holder = start_builder(Plan(cache, [[1]], log, 1, 60, "each"))
    wait_for(lambda: len(read_log(log)) == 1)
    other = start_builder(Plan(cache, [[2, 1]], log, 1, 0, "each"))
    wait_for(lambda: [line.what for line in read_log(log)].count("kept") == 1)
    os.kill(holder.pid, signal.SIGKILL)
    seconds = wait_for(lambda: [line.what for line in read_log(log)].count("begin") == 3)
    finish(other)
    finish(holder)
    return seconds


MEASURES: tuple[tuple[str, Callable[[str], float], float, str], ...] = (
    ("action that runs, plain result", lambda folder: runs(folder, PLAIN), 0.5, "ms"),
    ("action that runs, one artifact", lambda folder: runs(folder, KEPT), 0.5, "ms"),
    ("1,000 hits, plain results", lambda folder: hits(folder, PLAIN), 1.0, "s"),
    ("1,000 hits, one artifact each", lambda folder: hits(folder, KEPT), 1.0, "s"),
    ("Ctrl-C", interrupt, 1.0, "s"),
    ("a dead builder's action", take_over, 1.0, "s"),
)


def main() -> int:
    """Measure in a temporary folder below the first argument; the best of three: what else runs
    only adds."""
    # A shell starts what runs in the background with Ctrl-C ignored, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    above, page = False, take_page_option()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for name, measure, limit, unit in MEASURES:
            found = min(measure(folder) for _ in range(ROUNDS))
            above |= found > limit
            rows.append([name, f"<= {limit} {unit}", f"{found:.3f} {unit}"])
            print(
                f"{name:34} {found:7.3f} {unit:2}   limit {limit} {unit}{'   ABOVE' if found > limit else ''}"
            )
    if page:
        write_section(("what", "required", "measured"), rows)
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
