"""The incremental build against the one without cache: same answers, and it runs exactly what never
ran before."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.properties.engine_graphs import (
    BOOK,
    PRESENT,
    Log,
    PickyError,
    World,
    answer,
    edited,
    goals,
    lay_out,
    random_world,
)

from ingot_artifacts.store.cache import Cache
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import BuildStoppedError
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.naive import NaiveBuild
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.engine.executors.executor import InlineExecutor
from ingot_build_rules.engine.scheduler import Policy, Scheduler

Answer = int | str


def logged(run: Callable[[], list[Answer]]) -> tuple[list[Answer], Log]:
    """Return answers, and what ran for them."""
    PRESENT.log = Log()
    return run(), PRESENT.log


def naive(world: World, folder: Path) -> list[Answer]:
    """Answers of a build that knows nothing of earlier ones."""
    build = NaiveBuild(BOOK)
    return [
        _caught(functools.partial(_run_goal, build, world, folder, goal)) for goal in goals(world)
    ]


def _run_goal(build: NaiveBuild, world: World, folder: Path, goal: int) -> int:
    return build.run(answer(build, world, folder, goal))


def incremental(
    world: World, folder: Path, cache_folder: Path, *, keep_going: bool
) -> list[Answer]:
    """Answers of a build over a cache."""
    cache = Cache(str(cache_folder))
    values = Values(cache.blobs, Codec(BOOK.types))
    files = DiskFiles(str(cache_folder / "files"))
    keys = KeyMaker(lambda rule: str(world.code[rule.name]), lambda _: "")
    build = Scheduler(
        BOOK, values, InlineExecutor(BOOK, values), ActionCache(cache.index, cache.blobs), cache.leases, files, keys,
        Policy(keep_going=keep_going),
    )  # fmt: skip
    tasks = build.run_all([_answer(build, world, folder, goal) for goal in goals(world)])
    ran = sum(count.ran for count in build.counts.values())
    assert ran == PRESENT.log.ran.total() - len(PRESENT.log.failed)
    files.save()
    cache.close()
    return [
        "stopped" if isinstance(task.error, BuildStoppedError) else _plain(task.result, task.error)
        for task in tasks
    ]


async def _answer(build: Build, world: World, folder: Path, goal: int) -> Answer:
    return await answer(build, world, folder, goal)


def _caught(run: Callable[[], int]) -> Answer:
    try:
        return run()
    except PickyError as error:
        return _plain(None, error)


def _plain(result: int | None, error: BaseException | None) -> Answer:
    return f"{type(error).__name__} {error}" if error else int(result or 0)


def check_history(folder: Path, seed: int, edits: int) -> tuple[int, int]:
    """Build a random world, edit it, build again, and so on; return how many actions ran and how
    many a naive build runs."""
    generator = random.Random(seed)
    history = [random_world(generator)]
    known: set[str] = set()
    ran = total = 0
    folder.mkdir()
    for step in range(edits + 1):
        # Every fourth edit goes back to where the world was before.
        world = (
            generator.choice(history)
            if generator.randrange(4) == 0
            else edited(history[-1], generator)
        )
        history.append(world)
        lay_out(world, folder / "files")
        keep_going = generator.randrange(3) > 0
        expected, everything = logged(lambda world=world: naive(world, folder / "files"))  # type: ignore[misc]
        found, actual = logged(
            lambda world=world, going=keep_going: incremental(  # type: ignore[misc]
                world, folder / "files", folder / "cache", keep_going=going
            )
        )
        where = f"seed {seed}, step {step}"
        new = {identity for identity in everything.ran if identity not in known}
        assert max(actual.ran.values(), default=1) == 1, where
        if keep_going or not everything.failed:
            assert found == expected, where
            assert actual.ran == Counter(new), where
        else:
            # Of several failures another one may come first.
            pairs = zip(found, expected, strict=True)
            assert all(
                a in (b, "stopped") or (isinstance(a, str) and isinstance(b, str)) for a, b in pairs
            ), where
            assert set(actual.ran) <= new, where
            assert actual.failed, where
        known |= set(actual.ran) - actual.failed
        ran, total = ran + actual.ran.total(), total + everything.ran.total()
    return ran, total


def spoil(folder: Path, generator: random.Random) -> None:
    """Delete, shorten or overwrite a few blobs, and forget a few records."""
    blobs = sorted(path for path in (folder / "v1" / "cas").rglob("*") if path.is_file())
    for path in generator.sample(blobs, min(len(blobs), generator.randrange(5))):
        content = path.read_bytes()
        path.unlink()
        if generator.randrange(3):
            path.write_bytes(generator.choice((b"", content[:-1], bytes(len(content)))))
    cache = Cache(str(folder))
    keys = [key for key, _ in cache.index.items()]
    for key in generator.sample(keys, min(len(keys), generator.randrange(3))):
        cache.index.delete(key)
    cache.close()


def check_losses(folder: Path, seed: int, edits: int) -> None:
    """Edit a world, spoil the cache, build, and so on: the answers of a naive build, each action at
    most once."""
    generator = random.Random(seed)
    world = random_world(generator)
    folder.mkdir()
    for step in range(edits):
        world = edited(world, generator)
        lay_out(world, folder / "files")
        expected, everything = logged(lambda world=world: naive(world, folder / "files"))  # type: ignore[misc]
        for _ in range(2):
            spoil(folder / "cache", generator)
            found, actual = logged(
                lambda world=world: incremental(
                    world, folder / "files", folder / "cache", keep_going=True
                )  # type: ignore[misc]
            )
            where = f"seed {seed}, step {step}"
            assert found == expected, where
            assert max(actual.ran.values(), default=1) == 1, where
            assert set(actual.ran) <= set(everything.ran), where


@pytest.mark.broad
def test_random_edits_and_losses(tmp_path: Path) -> None:
    """The cache loses and damages blobs and records before each build: the same answers, and
    nothing runs twice."""
    for seed in range(15):
        check_losses(tmp_path / str(seed), seed, 8)


@pytest.mark.broad
def test_random_edits(tmp_path: Path) -> None:
    """Any history of edits: the answers of a naive build, each action at most once, and only what
    no earlier build has run."""
    counts = [check_history(tmp_path / str(seed), seed, 20) for seed in range(25)]
    ran, total = map(sum, zip(*counts, strict=True))
    assert 0 < ran < total / 2


@pytest.mark.slow
def test_random_edits_of_a_thousand_graphs(tmp_path: Path) -> None:
    """The same for 1,000 graphs and 20 edits of each."""
    counts = [check_history(tmp_path / str(seed), seed, 20) for seed in range(1000, 2000)]
    print("{} actions ran where naive builds run {}".format(*map(sum, zip(*counts, strict=True))))


@pytest.mark.slow
def test_losses_of_many_graphs(tmp_path: Path) -> None:
    """Losses for 300 graphs and 20 edits of each."""
    for seed in range(1000, 1300):
        check_losses(tmp_path / str(seed), seed, 20)
