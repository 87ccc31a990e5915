"""Every kind of executor over a cache of its own, and actions as data, for tests without a
scheduler.

In: a folder, rules, inputs. Out: executors, ``ActionSpec``, outcomes. Not done here: assertions.

A new kind of executor is a line in ``KINDS``: ``test_executor_conformance`` is then its suite.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.remote_executor import RemoteExecutor
from tests.hostile.engine_harness import BOOK, HANG_SECONDS

from ingot_artifacts.store.cache import Cache
from ingot_build_rules.engine.actions.action_spec import ActionSpec, Cost, specify
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.rule import Rule
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.executors.executor import Executor, Handle, InlineExecutor
from ingot_build_rules.engine.executors.local import LocalExecutor
from ingot_build_rules.engine.executors.pool import PoolExecutor

JOBS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where an executor is tried: a cache, and the values of this process."""

    folder: Path
    cache: Cache
    values: Values


def _inline(place: Place) -> Executor:
    return InlineExecutor(BOOK, place.values)


def _pool(place: Place) -> PoolExecutor:
    pool = _new_pool(place)
    pool.grow(JOBS)
    return pool


def _new_pool(place: Place) -> PoolExecutor:
    return PoolExecutor(
        BOOK, [layer.address for layer in place.cache.layers], place.cache.temporary
    )


def _local(place: Place) -> Executor:
    """It begins in this process and goes on in workers: so much waits."""
    backlog = Backlog()
    backlog.counts["work"] = Count(ran=1, seconds=1000)
    for _ in range(JOBS):
        backlog.add("work")
    return LocalExecutor(InlineExecutor(BOOK, place.values), _new_pool(place), JOBS, backlog)


def _remote(place: Place) -> Executor:
    return RemoteExecutor(BOOK, place.cache.blobs, place.folder / "remote", JOBS)


KINDS: dict[str, Callable[[Place], Executor]] = {
    "inline": _inline,
    "pool": _pool,
    "local": _local,
    "remote": _remote,
}
ELSEWHERE = ("pool", "remote")
"""Kinds that run no action in the process of the test: an action that ends its process is safe with
them."""
STOPPING = ("inline", "local", "remote")
"""Kinds that drop or stop what is cancelled at once; a worker of the pool ends what it has
begun."""


@contextmanager
def opened(kind: str, folder: Path) -> Generator[tuple[Executor, Place]]:
    """Open an executor; it is closed at once at the end."""
    cache = Cache(str(folder / "cache"))
    place = Place(folder, cache, Values(cache.blobs, Codec(BOOK.types)))
    executor = KINDS[kind](place)
    try:
        yield executor, place
    finally:
        executor.close(kill=True)
        cache.close()


def spec_of(
    rule: Rule[Any, Any], inputs: object, values: Values, cost: Cost | None = None
) -> ActionSpec:
    """Return the action that a scheduler would hand over; code, tools and loaded modules have the
    digests ``code``, ``tool NAME`` and ``module NAME``."""
    keys = KeyMaker(lambda _: "code", lambda name: f"tool {name}", lambda name: f"module {name}")
    return specify(rule, keys.key(rule, inputs), inputs, values, cost or Cost())


def run_all(executor: Executor, actions: Sequence[ActionSpec]) -> list[Outcome]:
    """Run actions, as many at once as the executor takes; return their outcomes in the order of the
    actions."""
    waiting, handles, outcomes = list(actions), list[Handle](), dict[Handle, Outcome]()
    while waiting or len(outcomes) < len(handles):
        while waiting and executor.capacity() > 0:
            handles.append(executor.submit(waiting.pop(0)))
        for handle, outcome in executor.wait(HANG_SECONDS):
            assert handle in handles, "an outcome of something else"
            assert handle not in outcomes, "a second outcome"
            outcomes[handle] = outcome
    return [outcomes[handle] for handle in handles]


def outcome_of(executor: Executor, handle: Handle) -> Outcome:
    """Wait for the outcome of the only action that has none yet."""
    ended: list[tuple[Handle, Outcome]] = []
    while not ended:
        ended = executor.wait(HANG_SECONDS)
    ((found, outcome),) = ended
    assert found is handle
    return outcome
