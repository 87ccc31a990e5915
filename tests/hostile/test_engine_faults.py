"""A cache that is damaged, poisoned, full or closed to writing: right answers, or one clear error
and a right answer next time."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.store_harness import Action as StoredAction
from tests.harness.store_harness import sql
from tests.hostile.engine_harness import (
    LOOK,
    WORK,
    Look,
    Plan,
    Work,
    action_count,
    finish,
    fold,
    folded,
    open_scheduler,
    processes_about,
    ran,
    start_builder,
    value_of,
)
from tests.hostile.test_store_faults import FAULTS, inject
from tests.properties.engine_graphs import settle

from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.records import read_facts
from ingot_artifacts.store.scrub import verify
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.errors import ActionError, HitDiffersError
from ingot_build_rules.engine.actions.message_pack import pack, unpack
from ingot_build_rules.engine.scheduler import Policy, Scheduler

NUMBERS = range(12)
COUNT = action_count(12) + 2
MANY = range(48)  # for the injector, which spoils nothing twice
MANY_COUNT = action_count(48) + 2
CHECK_ALL = Policy(checked_share=1.0)


async def everything(
    build: Build, folder: Path, numbers: range = NUMBERS
) -> tuple[int, tuple[str, ...]]:
    """A fold, and a few files of which one makes a record too long for the index."""
    names = ("short", "long")
    return await fold(build, numbers), await build.need_all(
        LOOK, [Look(name, str(folder)) for name in names]
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of files to look at."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "short").write_text("a few letters")
    (folder / "long").write_text("many letters" * 4000)
    settle()
    return folder


def check(folder: Path, files: Path, jobs: int = 1, numbers: range = NUMBERS) -> int:
    """Build twice: right both times, the second time without running anything; return how many ran
    in the first."""
    expected = folded(numbers), tuple((files / name).read_text() for name in ("short", "long"))
    with open_scheduler(folder, jobs) as build:
        assert build.run(everything(build, files, numbers)) == expected
        first = ran(build)
    with open_scheduler(folder, jobs) as build:
        assert build.run(everything(build, files, numbers)) == expected
        assert ran(build) == 0
    return first


def stored(cache: Cache) -> list[StoredAction]:
    """What is in a cache, for the store's own injector of faults."""
    found: list[StoredAction] = []
    for key, value in cache.index.items():
        facts = read_facts(value, cache.blobs)
        found.append(
            StoredAction(key, facts.rule, tuple(bytes(cache.blobs.get(ref)) for ref in facts.refs))
        )
    return found


def check_damage(folder: Path, files: Path, jobs: int, rounds: int) -> None:
    """Faults of every kind, 50 a round, met by builds alone; in the end of each a check finds
    nothing."""
    assert check(folder, files, jobs, MANY) == MANY_COUNT
    for seed in range(rounds):
        cache = Cache(str(folder))
        inject(cache, stored(cache), seed + 100 * jobs, FAULTS)
        cache.close()
        assert 0 < check(folder, files, jobs, MANY) < MANY_COUNT
        cache = Cache(str(folder))
        verify(cache)
        check(folder, files, jobs, MANY)
        assert verify(cache).findings == ()
        cache.close()


@pytest.mark.broad
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_damaged_cache_gives_right_answers(tmp_path: Path, files: Path, jobs: int) -> None:
    """Faults of every kind in blobs, rows and roots: found and healed."""
    check_damage(tmp_path / "cache", files, jobs, 2)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_thousand_faults(tmp_path: Path, files: Path, jobs: int) -> None:
    """The same with 500 faults for each way to run."""
    check_damage(tmp_path / "cache", files, jobs, 10)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_damaged_lower_cache_is_left_as_it_is(tmp_path: Path, files: Path, jobs: int) -> None:
    """What is damaged below is made above; what is whole below is not; nothing below changes."""
    lower = tmp_path / "lower"
    check(lower, files, 1, MANY)
    cache = Cache(str(lower))
    inject(cache, stored(cache), 7, FAULTS)
    cache.close()
    before = snapshot(lower)
    for first in (True, False):
        with open_scheduler(tmp_path / "upper", jobs, lower=[str(lower)]) as build:
            assert build.run(everything(build, files, MANY))[0] == folded(MANY)
            assert 0 < ran(build) < MANY_COUNT if first else ran(build) == 0
    assert snapshot(lower) == before


def snapshot(folder: Path) -> dict[str, object]:
    """Names, times and targets of all that is in a folder, but for what SQLite's readers put beside
    a database."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-shm", "-wal")) and path.name != "index"
    }


def poison(folder: Path, change: Callable[[dict[str, Any]], object]) -> int:
    """Write rows anew with a right seal: what somebody would do who may write to the cache; return
    how many changed."""
    cache = Cache(str(folder))
    rows = list(cache.index.items())
    count = 0
    for key, value in rows:
        plain: dict[str, Any] = unpack(value)
        if "result" in plain:
            other = change(plain)
            content = other if isinstance(other, bytes) else pack(plain)
            seal = cache.trust.seal(key + content)
            sql(cache, ("UPDATE Cache SET value = ? WHERE key = ?", (seal + content, key)))
            count += content != value
    cache.close()
    return count


DEEP = b"\x91" * 3000 + b"\xc0"
POISON: dict[str, Callable[[dict[str, Any]], object]] = {
    "refs lead outside": lambda plain: plain.update(refs=["../../../../secret", "0" * 62 + "/."]),
    "refs are others": lambda plain: plain.update(refs=plain["refs"][:1]),
    "no refs": lambda plain: plain.update(refs=[]),
    "refs are no list": lambda plain: plain.update(refs=3),
    "a result of unknown class": lambda plain: plain.update(result=pack([["Path"], [16, "/etc/passwd"]])),
    "a result of wrong arguments": lambda plain: plain.update(result=pack([["Work"], [16]])),
    "a result that is no value": lambda plain: plain.update(result=pack([[], [99, 99]])),
    "a result without end": lambda plain: plain.update(result=DEEP),
    "a result of a gigantic size": lambda plain: plain.update(result=1 << 40),
    "another version": lambda plain: plain.update(v=99),
    "no ingredients": lambda plain: plain.update(ingredients={}),
    "ingredients are no map": lambda plain: plain.update(ingredients=[1]),
    "an endless time": lambda plain: plain.update(seconds="for ever"),
    "messages of numbers": lambda plain: plain.update(messages=7),
    "no record": lambda _: b"\xc1",
    "nothing": lambda _: b"",
    "a list": lambda _: pack([1, 2, 3]),
    "a number": lambda _: pack(3),
    "deep lists": lambda _: DEEP,
    "a blob outside": lambda _: pack({"blob": "../../../../secret"}),
    "a blob that is not there": lambda _: pack({"blob": "0" * 64}),
    "a blob that is no name": lambda _: pack({"blob": 3}),
    "a blob of another kind": lambda plain: pack({"blob": plain["refs"][0]}) if plain["refs"] else None,
    "names that nobody noted": lambda _: pack({"v": 1, "refs": [], "read_sets": [["../../secret", 3], "ab", []]}),
    "sets that are none": lambda _: pack({"v": 1, "refs": [], "read_sets": 3}),
}  # fmt: skip


@pytest.mark.parametrize("kind", POISON)
@pytest.mark.sweep(8)
def test_a_poisoned_record_is_no_record(
    tmp_path: Path, files: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Well-sealed rows of nonsense: they run again, no file outside of the cache is opened, no
    other class is made."""
    folder = tmp_path / "a" / "b" / "cache"
    (tmp_path / "secret").write_text("secret")
    check(folder, files)
    spoiled = poison(folder, POISON[kind])
    assert spoiled >= COUNT - 2  # one record is a blob
    opened: list[str] = []
    make = os.open

    def watched(path: str, *rest: Any) -> int:
        opened.append(os.path.abspath(path))
        return make(path, *rest)

    monkeypatch.setattr(os, "open", watched)
    assert check(folder, files) == spoiled
    assert [path for path in opened if not path.startswith((str(folder), "/dev/null"))] == []


def test_names_in_a_poisoned_set_are_resolved_by_the_rule_alone(
    tmp_path: Path, files: Path
) -> None:
    """A set of names that no run has noted leads to no result; what the rule makes of such names is
    its own business."""
    folder = tmp_path / "cache"
    check(folder, files)
    cache = Cache(str(folder))
    for key, value in list(cache.index.items()):
        if "read_sets" in unpack(value):
            cache.index.put(
                key, pack({"v": 1, "refs": [], "read_sets": [["\0"], [""], ["short"] * 5]})
            )
    cache.close()
    assert check(folder, files) == 2


def test_records_that_claim_results_of_others(tmp_path: Path, files: Path) -> None:
    """A record says what it is the result of: one that was made for something else is none, even
    well-sealed in its place."""
    folder = tmp_path / "cache"
    check(folder, files)
    seen: list[bytes] = []

    def rotate(plain: dict[str, Any]) -> bytes:
        seen.append(pack(plain))
        return seen[-2] if len(seen) > 1 else seen[0]

    assert poison(folder, rotate) == COUNT - 2  # the first one keeps its own
    assert check(folder, files) == COUNT - 2


def test_a_forged_result_is_found_by_checking(tmp_path: Path) -> None:
    """A record with everything right but its result is believed, unless hits are checked; then it
    is named and forgotten."""

    async def one(build: Build, number: int) -> int:
        return await build.value((await build.need(WORK, Work(number)))[0])

    with open_scheduler(tmp_path) as build:
        assert build.run(one(build, 1)) == value_of(1, ())
        (other,) = build.run_all([one(build, 2)])
        forged = other.trace[0][1]
        record = build.cache.record(forged.where)
    assert record is not None
    poison(tmp_path, lambda plain: plain.update(result=record.result, refs=record.refs))
    with open_scheduler(tmp_path, policy=CHECK_ALL) as build:
        with pytest.raises(HitDiffersError, match="work gave another result than the cache had"):
            build.run(one(build, 1))
        assert HitDiffersError.exit_code == 4
    with open_scheduler(tmp_path) as build:
        assert build.run(one(build, 1)) == value_of(1, ())
        assert ran(build) == 1


def test_an_artifact_of_another_kind_is_made_again(tmp_path: Path) -> None:
    """Forged records that name right bytes which are no value: one clear error for each, then the
    build is right."""
    with open_scheduler(tmp_path) as build:
        assert build.run(fold(build, range(2))) == folded(range(2))
        strange = build.values.keep_bytes(b"\xc1 no value").digest

    def forge(plain: dict[str, Any]) -> None:
        first, second = plain["refs"]
        result = plain["result"].replace(bytes.fromhex(first), bytes.fromhex(strange))
        plain.update(result=result, refs=[strange, second])

    assert poison(tmp_path, forge) == 3
    for failure in (True, True, True, False):
        with open_scheduler(tmp_path) as build:
            (task,) = build.run_all([fold(build, range(2))])
            assert isinstance(task.error, ActionError) == failure
            assert failure == ("an artifact is lost" in str(task.error))
            assert failure or task.result == folded(range(2))


def test_checked_hits_and_expected_ones(tmp_path: Path, files: Path) -> None:
    """Checking runs every hit again and finds nothing; a share of hits checks a share; expecting
    hits runs nothing, ever."""
    check(tmp_path, files)
    for share, low, high in ((1.0, COUNT, COUNT), (0.5, 5, COUNT - 5), (0.0, 0, 0)):
        with open_scheduler(tmp_path, policy=Policy(checked_share=share)) as build:
            build.run(everything(build, files))
            assert low <= ran(build) <= high
    with open_scheduler(tmp_path, policy=Policy(checked_share=1.0, expect_cached=True)) as build:
        build.run(everything(build, files))
        assert ran(build) == 0
    checked = 0
    for seed in range(0, 1 << 32, 1 << 30):  # each quarter of the keys once
        with open_scheduler(tmp_path, policy=Policy(checked_share=0.25, check_seed=seed)) as build:
            build.run(everything(build, files))
            checked += ran(build)
    assert checked == COUNT
    for blob in (tmp_path / "v1" / "cas").rglob("*"):
        if blob.is_file():
            blob.unlink()
    with open_scheduler(tmp_path, policy=Policy(expect_cached=True)) as build:
        (task,) = build.run_all([everything(build, files)])
        assert "the build expects everything in the cache" in str(task.error)
        assert ran(build) == 0
        assert len(build.would_run) == len(NUMBERS)


def test_expecting_hits_runs_nothing_for_what_was_lost(tmp_path: Path) -> None:
    """An artifact that turns out to be damaged while a build expects everything there is named, and
    not made."""
    with open_scheduler(tmp_path) as build:
        build.run(fold(build, range(4)))
    for blob in (tmp_path / "v1" / "cas").rglob("*"):
        if blob.is_file():
            blob.chmod(0o600)
            blob.write_bytes(bytes(blob.stat().st_size))
    with open_scheduler(tmp_path, policy=Policy(expect_cached=True)) as build:
        (task,) = build.run_all([fold(build, range(4))])
        assert "the build expects everything in the cache" in str(task.error)
        assert (ran(build), len(build.would_run)) == (0, 1)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("keep_going", [True, False])
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_cannot_be_made_again_fails(tmp_path: Path, jobs: int, *, keep_going: bool) -> None:
    """Who needs a lost artifact whose maker fails now, fails with its error; the build ends."""
    log = tmp_path / "log"

    async def goal(build: Scheduler, do: str) -> int:
        part = (await build.need(WORK, Work(1, log=str(log), do=do)))[0]
        pairs = await build.need_all(WORK, [Work(number, (part,)) for number in (2, 3, 4)])
        return sum([await build.value(pair[0]) for pair in pairs])

    with open_scheduler(tmp_path, jobs) as build:
        build.run(goal(build, ""))
        keep = {item.digest for item in build.run_all([build.need(WORK, Work(1))])[0].result}
    cache = Cache(str(tmp_path))
    for key, value in list(cache.index.items()):
        if not keep.issuperset(read_facts(value, cache.blobs).refs):
            cache.index.delete(key)
    for digest in keep:
        path = tmp_path / "v1" / "cas" / "sha256" / digest[:2] / digest[2:]
        path.chmod(0o600)
        path.write_bytes(bytes(path.stat().st_size))
    cache.close()
    with open_scheduler(tmp_path, jobs, Policy(keep_going=keep_going)) as build:
        (task,) = build.run_all([goal(build, "raise")])
        assert type(task.error).__name__ == "WrongError"
    with open_scheduler(tmp_path, jobs) as build:
        (task,) = build.run_all([goal(build, "")])
        assert task.error is None


def test_bytes_from_outside_are_put_again(tmp_path: Path) -> None:
    """What the caller gave and the cache lost is stored again, for the caller and for the rules."""
    with open_scheduler(tmp_path) as build:
        content = build.keep_bytes(b"given")
        path = tmp_path / "v1" / "cas" / "sha256" / content.digest[:2] / content.digest[2:]
        path.unlink()

        async def goal() -> bytes:
            view = await build.value(content)
            return view.tobytes()

        assert build.run(goal()) == b"given"
        assert path.read_bytes() == b"given"


def full(*_: object) -> int:
    """A disk without space."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["open", "write", "rename", "makedirs"])
@pytest.mark.parametrize("keep_going", [True, False])
@pytest.mark.sweep(4)
def test_a_full_disk_at_any_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, keep_going: bool
) -> None:
    """The n-th call that takes space fails, for each n: a clear error, no wrong state; the next
    build runs what is missing."""
    real: Callable[..., Any] = getattr(os, name)
    expected = folded(range(4))
    count = 0
    for limit in range(60):
        calls = 0

        def limited(*arguments: Any, limit: int = limit, **named: Any) -> object:
            nonlocal calls
            if name != "open" or arguments[1] & os.O_CREAT:
                calls += 1
            return full() if calls > limit else real(*arguments, **named)

        folder = tmp_path / str(limit)
        with open_scheduler(folder) as build:
            build.cache.find(build.keys.key(WORK, Work(1)), None)  # the index is open
            monkeypatch.setattr(os, name, limited)
            (task,) = build.run_all([fold(build, range(4))])
            monkeypatch.undo()
            before = ran(build)
        if task.error is None:
            break
        assert isinstance(task.error, OutputError)
        assert "do: free space" in str(task.error)
        count += 1
        with open_scheduler(folder, policy=Policy(keep_going=keep_going)) as build:
            assert build.run(fold(build, range(4))) == expected
            assert before + ran(build) == action_count(4)
        assert list((folder / "v1" / "tmp").iterdir()) == []
    assert count >= (5 if name == "makedirs" else 10)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.broad
def test_a_limit_of_file_sizes(tmp_path: Path, jobs: int) -> None:
    """Files may not grow beyond any of these sizes: each builder ends with one clear error, and the
    next one is right."""
    answers: list[int] = []
    for size in (0, 1000, 2999, 20_000, 60_000, 200_000, 1 << 24):
        folder = str(tmp_path / str(size))
        status, lines, errors = finish(
            start_builder(Plan(folder, [list(range(40))], jobs=jobs, file_bytes_max=size))
        )
        answers.append(status)
        if status:
            assert (status, lines) == (1, [])
            assert errors.startswith(
                ("OutputError: cannot write", "OutputError: cannot use the cache")
            )
            assert "\n  do: " in errors
        assert finish(start_builder(Plan(folder, [list(range(40))], jobs=jobs)))[1] == [
            str(folded(range(40)))
        ]
        assert processes_about(folder) == []
    assert answers[0] == 1
    assert answers[-1] == 0
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_read_only_cache_below(tmp_path: Path, files: Path) -> None:
    """A build over a cache that is only read: hits come from it, what is new goes to a folder of
    its own; nothing below changes."""
    lower = tmp_path / "lower"
    check(lower, files)
    before = snapshot(lower)
    for jobs in (1, 2):
        with open_scheduler(tmp_path / f"upper {jobs}", jobs, lower=[str(lower)]) as build:
            assert build.run(everything(build, files))[0] == folded(NUMBERS)
            assert ran(build) == 0
            assert build.run(fold(build, range(100, 104))) == folded(range(100, 104))
            assert ran(build) == 7
    assert snapshot(lower) == before
