"""Builders that are killed, stopped, interrupted and crowded: no wrong answer, and nothing runs
again that was done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tests.hostile.engine_harness import (
    Line,
    Plan,
    finish,
    fold,
    folded,
    open_scheduler,
    processes_about,
    ran,
    read_log,
    start_builder,
    wait_for,
)

from ingot_artifacts.store.cache import Cache

JOBS = 3
NUMBERS = list(range(24))


def kill(builder: subprocess.Popen[str], text: str) -> None:
    """Kill a builder and wait until all its processes are gone."""
    os.killpg(builder.pid, signal.SIGKILL)
    builder.wait()
    wait_for(lambda: not processes_about(text))


def check_kills(folder: Path, points: int, seed: int) -> tuple[int, int]:
    """Kill builders at random moments, each on what the last one left; return how many ended
    before, how many actions ran twice."""
    generator = random.Random(seed)
    ended = repeated = 0
    cache, log, seconds = folder / "cache 0", folder / "log 0", 1.0
    for point in range(points):
        plan = Plan(str(cache), [NUMBERS], str(log), JOBS, 0.01)
        before = len(read_log(log))
        started = time.monotonic()
        builder = start_builder(plan)
        try:
            builder.wait(generator.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            kill(builder, str(folder))
        else:
            seconds = max(seconds, time.monotonic() - started)
        status, lines, errors = finish(builder)
        repeated += check_log(read_log(log), before)
        if status == 0:
            assert lines == [str(folded(NUMBERS))]
            ended += 1
            cache, log = folder / f"cache {point + 1}", folder / f"log {point + 1}"
        else:
            assert (status, errors) == (-signal.SIGKILL, "")
    with open_scheduler(cache) as build:
        assert build.run(fold(build, NUMBERS)) == folded(NUMBERS)
    with open_scheduler(cache) as build:
        assert build.run(fold(build, NUMBERS)) == folded(NUMBERS)
        assert ran(build) == 0
    return ended, repeated


def check_log(log: Sequence[Line], before: int) -> int:
    """Nothing began after it was kept; of what one builder began, at most JOBS were not kept.
    Return what began again."""
    kept: set[str] = set()
    for line in log:
        assert line.what != "begin" or line.name not in kept, line
        if line.what == "kept":
            kept.add(line.name)
    begun = [line.name for line in log[before:] if line.what == "begin"]
    assert len(set(begun)) == len(begun)
    assert len(set(begun) - kept) <= JOBS
    return len(set(begun) & {line.name for line in log[:before] if line.what == "begin"})


@pytest.mark.broad
def test_killed_builders_repeat_what_was_in_flight(tmp_path: Path) -> None:
    """kill -9 of a builder and its workers at 15 random points: right answers, and only what was in
    flight runs again."""
    check_kills(tmp_path, 15, 1)


@pytest.mark.slow
def test_killed_builders_at_500_points(tmp_path: Path) -> None:
    """The same at 500 points, of which some hit every part of a build."""
    ended, repeated = check_kills(tmp_path, 500, 2)
    print(f"{ended} ended before they were killed, {repeated} actions ran again")
    assert ended
    assert repeated


def check_crowd(folder: Path, builders: int, builds: int) -> tuple[int, int]:
    """Builders on one cache, with builds that overlap, in orders that differ a little: all want the
    same at about the same time.

    Return how many actions ran, and how often a builder began while another one was at work.
    """
    generator = random.Random(builders)
    log = folder / "log"
    plans: list[Plan] = []
    for number in range(builders):
        order = sorted(range(builds), key=lambda place: place + generator.uniform(0, 4))
        windows = [list(range(4 * place, 4 * place + 8)) for place in order]
        plans.append(Plan(str(folder / "cache"), windows, str(log), 1 + number % 2, 0.002))
    for plan, builder in [(plan, start_builder(plan)) for plan in plans]:
        status, lines, errors = finish(builder, 1200)
        assert (status, errors) == (0, "")
        assert lines == [str(folded(numbers)) for numbers in plan.builds]
    begun = [line for line in read_log(log) if line.what == "begin"]
    assert set(Counter(line.name for line in begun).values()) == {1}
    return len(begun), sum(one.process != other.process for one, other in pairwise(begun))


def every_action(builds: int) -> set[object]:
    """What the builds of a crowd consist of: a number, or the numbers below a pair."""
    found: set[object] = set()
    for place in range(builds):
        row: list[tuple[int, ...]] = [(number,) for number in range(4 * place, 4 * place + 8)]
        while row:
            found.update(row)
            row = [row[at] + row[at + 1] for at in range(0, len(row) - 1, 2)]
    return found


@pytest.mark.broad
def test_three_builders_on_one_cache(tmp_path: Path) -> None:
    """Three builders, ten random builds each: no wrong answer, and no action runs twice."""
    ran, turns = check_crowd(tmp_path, 3, 10)
    assert ran == len(every_action(10))
    assert turns


@pytest.mark.slow
def test_eight_builders_on_one_cache(tmp_path: Path) -> None:
    """The same with eight builders and 200 builds each."""
    ran, turns = check_crowd(tmp_path, 8, 200)
    print(f"{ran} actions ran, by another builder than the one before {turns} times")
    assert ran == len(every_action(200))
    assert turns > 200


def test_a_stopped_holder_is_waited_for_and_taken_over(tmp_path: Path) -> None:
    """While somebody holds one action, others are run; when he is killed, his action is run
    soon."""
    log, cache = tmp_path / "log", str(tmp_path / "cache")

    def seen(what: str) -> set[str]:
        return {line.name for line in read_log(log) if line.what == what}

    holder = start_builder(Plan(cache, [[1]], str(log), 1, 3600, "each"))
    wait_for(lambda: "1" in seen("begin"))
    os.kill(holder.pid, signal.SIGSTOP)
    other = start_builder(Plan(cache, [list(range(20))], str(log), 1, 0, "each"))
    wait_for(lambda: len(seen("kept")) == 19)
    time.sleep(0.1)
    assert other.poll() is None
    assert "1" not in seen("kept")
    os.kill(holder.pid, signal.SIGKILL)
    wait_for(lambda: "1" in seen("kept"))  # how fast: bench_engine
    assert finish(other)[0] == 0
    assert finish(holder)[0] == -signal.SIGKILL


def test_a_waiting_builder_takes_the_result(tmp_path: Path) -> None:
    """Who waits for an action of somebody who ends it well has its result, and runs nothing."""
    log, cache = tmp_path / "log", str(tmp_path / "cache")
    first = start_builder(Plan(cache, [[1]], str(log), 2, 0.5, "each"))
    wait_for(lambda: read_log(log))
    second = start_builder(Plan(cache, [[1]], str(log), 2, 0.5, "each"))
    assert finish(first)[:2] == finish(second)[:2]
    assert [line.what for line in read_log(log)] == ["begin", "end", "kept"]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("jobs", [1, JOBS])
def test_ctrl_c(tmp_path: Path, jobs: int) -> None:
    """A builder that hears Ctrl-C ends soon, without orphans; its leases are free, and the next
    build is right."""
    log, folder = tmp_path / "log", tmp_path / "cache"
    builder = start_builder(Plan(str(folder), [list(range(6))], str(log), jobs, 3600, "each"))
    wait_for(lambda: len(read_log(log)) == jobs)
    os.kill(builder.pid, signal.SIGINT)
    wait_for(lambda: builder.poll() is not None)  # how fast: bench_engine
    status, lines, errors = finish(builder)
    assert (status, lines) == (-signal.SIGINT, [])
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert "never awaited" not in errors
    assert processes_about(str(tmp_path)) == []
    assert list((folder / "v1" / "tmp").iterdir()) == []
    cache = Cache(str(folder))
    assert cache.leases.try_acquire(bytes(32))
    cache.close()
    with open_scheduler(folder) as build:
        assert build.run(fold(build, range(6))) == folded(range(6))
