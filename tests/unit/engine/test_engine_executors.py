"""What the scheduler and its executor owe each other: actions that are complete as data, cancels,
estimates, results that are checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.harness.build_harness import TARGET, chain
from tests.harness.executor_harness import spec_of
from tests.harness.remote_executor import RemoteExecutor
from tests.hostile.engine_harness import (
    BOOK,
    WORK,
    Work,
    WrongError,
    each,
    fold,
    folded,
    open_scheduler,
    ran,
    value_of,
)

from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.trust import ANYONE
from ingot_build_rules.engine.actions.action_spec import ActionSpec, Blob, Cost, Tool, specify
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import ActionError, BuildStoppedError
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.engine.executors.executor import Handle, InlineExecutor
from ingot_build_rules.engine.executors.wire import plain_action, read_action
from ingot_build_rules.engine.scheduler import Policy, Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
from ingot_build_rules.making.stages.start_compilation import start_compilation

ROOM = 4


class Watched(InlineExecutor):
    """Takes four actions at once and runs them one by one; writes down what it is asked; ``spoil``
    changes outcomes."""

    def __init__(
        self, build: Scheduler, spoil: Callable[[Outcome], Outcome] = lambda outcome: outcome
    ) -> None:
        super().__init__(BOOK, build.values)
        self.spoil = spoil
        self.submitted: list[ActionSpec] = []
        self.cancelled: list[Handle] = []
        self.kills: list[bool] = []

    def capacity(self) -> int:
        """Some may wait here."""
        return ROOM - len(self._queue)

    def submit(self, action: ActionSpec) -> Handle:
        """Write down the action."""
        self.submitted.append(action)
        return super().submit(action)

    def cancel(self, handle: Handle) -> None:
        """Write down the handle."""
        self.cancelled.append(handle)
        super().cancel(handle)

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Spoil what comes out."""
        return [(handle, self.spoil(outcome)) for handle, outcome in super().wait(timeout_seconds)]

    def close(self, *, kill: bool) -> None:
        """Write down how."""
        self.kills.append(kill)
        super().close(kill=kill)


@contextmanager
def watched(
    folder: Path,
    policy: Policy | None = None,
    spoil: Callable[[Outcome], Outcome] = lambda outcome: outcome,
) -> Generator[tuple[Scheduler, Watched]]:
    """A build over an executor that is looked at."""
    with open_scheduler(folder, policy=policy) as build:
        executor = Watched(build, spoil)
        build.executor = executor
        yield build, executor


async def one(build: Build, work: Work) -> int:
    """Work on one number."""
    return await build.value((await build.need(WORK, work))[0])


def test_an_action_names_all_that_it_takes() -> None:
    """Rule, version, code, tools by digest, inputs and the blobs in them by size; as plain values
    and back it is the same."""
    values = Values(MemoryBlobs(), Codec(BOOK.types))
    parts = (values.keep(7), values.keep(1000))
    rule = replace(WORK, version=3, tools=("zig",), reads_files=True)
    action = spec_of(rule, Work(1, parts), values, Cost(0.5, 100))
    sizes = [values.blobs.get(part.digest).nbytes for part in parts]
    assert action.blobs == tuple(
        Blob(part.digest, size) for part, size in zip(parts, sizes, strict=True)
    )
    assert (action.rule, action.version, action.code) == ("work", 3, "code")
    assert action.tools == (Tool("zig", "tool zig"),)
    assert values.codec.decode(action.inputs, values) == Work(1, parts)
    again = read_action(plain_action(action))
    assert (again, again.cost) == (action, action.cost)
    assert action.reads_files
    other = KeyMaker(lambda _: "other", lambda _: "").key(WORK, Work(1, parts))
    assert specify(WORK, other, Work(1, parts), values, Cost()).key != action.key


@pytest.mark.broad
def test_a_build_over_an_executor_that_shares_nothing(tmp_path: Path) -> None:
    """Every action crosses as bytes to a process with the named blobs alone: the result is right,
    and the next build runs nothing."""
    with open_scheduler(tmp_path / "cache") as build:
        remote = RemoteExecutor(BOOK, build.values.blobs, tmp_path / "remote", 2)
        build.executor = remote
        assert build.run(fold(build, range(5))) == folded(range(5))
        assert len(remote.sent) == ran(build) == 11
    with open_scheduler(tmp_path / "cache") as build:
        assert build.run(fold(build, range(5))) == folded(range(5))
        assert ran(build) == 0


class _FilesHere:
    """Actions that read files run in this process, all others share nothing with it."""

    def __init__(self, here: InlineExecutor, remote: RemoteExecutor) -> None:
        self.here, self.remote = here, remote
        self.read_files: set[str] = set()

    def capacity(self) -> int:
        """What is free in both."""
        return min(self.here.capacity(), self.remote.capacity())

    def submit(self, action: ActionSpec) -> Handle:
        """Choose by what the action says."""
        if action.reads_files:
            self.read_files.add(action.rule)
        return self.here.submit(action) if action.reads_files else self.remote.submit(action)

    def cancel(self, handle: Handle) -> None:
        """Whoever has it."""
        self.here.cancel(handle)
        self.remote.cancel(handle)

    def wait(self, timeout_seconds: float | None) -> list[tuple[Handle, Outcome]]:
        """Whatever has ended."""
        return self.here.wait(0) or self.remote.wait(timeout_seconds)

    def close(self, *, kill: bool) -> None:
        """Both."""
        self.here.close(kill=kill)
        self.remote.close(kill=kill)


@pytest.mark.broad
def test_our_rules_run_where_nothing_is_shared(tmp_path: Path) -> None:
    """A whole compilation, all actions but those that say that they read files in processes without
    the cache: equal bytes."""
    path = tmp_path / "model.onnx"
    path.write_bytes(chain([8, 16, 4]).SerializeToString())
    options = CompileOptions((str(resolve_target(TARGET)),))
    with open_build(BuildSettings(str(tmp_path / "first"), ANYONE)) as build:
        expected = bytes(start_compilation(build, str(path), options).to_bytes())
    with open_build(BuildSettings(str(tmp_path / "second"), ANYONE)) as build:
        remote = RemoteExecutor(RULEBOOK, build.values.blobs, tmp_path / "remote", 2)
        build.executor = executor = _FilesHere(InlineExecutor(RULEBOOK, build.values), remote)
        assert bytes(start_compilation(build, str(path), options).to_bytes()) == expected
        assert executor.read_files == {"import_model"}
        assert len(remote.sent) == ran(build) - 1 > 10


def test_a_failure_cancels_what_has_not_begun(tmp_path: Path) -> None:
    """Without -k, what waits in the executor is cancelled and told as stopped; its leases are free;
    the next build runs it."""
    with watched(tmp_path) as (build, executor):
        works = [Work(number, do="raise" if number == 0 else "") for number in range(8)]
        tasks = build.run_all([one(build, work) for work in works])
        assert isinstance(tasks[0].error, WrongError)
        assert all(isinstance(task.error, BuildStoppedError) for task in tasks[1:])
        assert [handle.action for handle in executor.cancelled] == executor.submitted[1:]
        assert len(executor.submitted) == ROOM
        assert all(build.leases.try_acquire(action.key) for action in executor.submitted)
    with watched(tmp_path) as (build, _):
        assert build.run(each(build, range(8))) == sum(value_of(number, ()) for number in range(8))
        assert ran(build) == 8


def test_with_keep_going_nothing_is_cancelled(tmp_path: Path) -> None:
    """One fails, all others run."""
    with watched(tmp_path, Policy(keep_going=True)) as (build, executor):
        works = [Work(number, do="raise" if number == 0 else "") for number in range(8)]
        tasks = build.run_all([one(build, work) for work in works])
        assert [task.error is None for task in tasks] == [False] + [True] * 7
        assert executor.cancelled == []


def test_ctrl_c_cancels_all_and_closes_at_once(tmp_path: Path) -> None:
    """Everything that was handed over is cancelled, the executor is ended, the leases are free."""

    def interrupt(_: Outcome) -> Outcome:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt), watched(tmp_path, spoil=interrupt) as (build, executor):
        try:
            build.run(each(build, range(8)))
        finally:
            assert [handle.action for handle in executor.cancelled] == executor.submitted
            assert len(executor.submitted) == ROOM
            assert executor.kills == [True]
            assert all(build.leases.try_acquire(action.key) for action in executor.submitted)


SPOILED: dict[str, Callable[[Outcome], Outcome]] = {
    "noise": lambda outcome: replace(outcome, result=b"noise"),
    "nothing": lambda outcome: replace(outcome, result=b""),
    "fewer artifacts": lambda outcome: replace(outcome, refs=outcome.refs[:1]),
    "more artifacts": lambda outcome: replace(outcome, refs=(*outcome.refs, "0" * 64)),
    "other artifacts": lambda outcome: replace(outcome, refs=("0" * 64, "1" * 64)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_result_that_does_not_hold_is_refused(tmp_path: Path, how: str) -> None:
    """An executor that says wrong things of a result fails its action, in four parts; nothing of it
    is kept."""
    with (
        watched(tmp_path, spoil=SPOILED[how]) as (build, _),
        pytest.raises(
            ActionError,
            match=r"a result that cannot be used\n  where: rule work\n  why: .*\n  do: ",
        ),
    ):
        build.run(one(build, Work(1)))
    with watched(tmp_path) as (build, _):
        assert build.run(one(build, Work(1))) == value_of(1, ())
        assert ran(build) == 1


def test_an_executor_that_keeps_the_artifacts_to_itself(tmp_path: Path) -> None:
    """It names the right blobs and gives none: the build ends with an error, not for ever and not
    with a wrong result."""
    folder = tmp_path / "v1"

    def forget(outcome: Outcome) -> Outcome:
        for digest in outcome.refs:
            os.unlink(blob_path(str(folder), digest))
        return outcome

    with (
        watched(tmp_path, spoil=forget) as (build, _),
        pytest.raises(ActionError, match="an artifact is lost"),
    ):
        build.run(fold(build, range(2)))


@dataclass
class _Losing:
    """Deletes a blob once, right before the action that needs it is made."""

    build: Scheduler
    folder: str
    lost: list[str] = field(default_factory=list[str])

    async def goal(self) -> int:
        """Work, lose the result, work with it."""
        part = (await self.build.need(WORK, Work(1)))[0]
        self.build.values.forget()
        os.unlink(blob_path(self.folder, part.digest))
        self.lost.append(part.digest)
        return await one(self.build, Work(2, (part,)))


def test_an_action_is_handed_over_when_its_inputs_are_there(tmp_path: Path) -> None:
    """A lost input is made again first: no executor sees an action that names a blob nobody has."""
    with watched(tmp_path) as (build, executor):
        losing = _Losing(build, str(tmp_path / "v1"))
        assert build.run(losing.goal()) == value_of(2, [value_of(1, ())])
        names = [tuple(blob.digest for blob in action.blobs) for action in executor.submitted]
        assert names == [(), (), tuple(losing.lost)]


def test_costs_are_of_this_build_or_of_past_ones(tmp_path: Path) -> None:
    """The first action of a rule costs what history says, or nobody knows; later ones what those
    before took and made."""
    for history, first in (({}, Cost()), ({"work": 0.25}, Cost(0.25))):
        with open_scheduler(tmp_path / str(len(history))) as build:
            build.backlog = Backlog(history)
            build.backlog.counts = build.counts
            build.executor = executor = Watched(build)
            build.run(fold(build, range(2)))
            assert [action.cost for action in executor.submitted[:2]] == [first] * 2
            last = executor.submitted[2].cost
            assert last.seconds is not None
            assert last.result_bytes is not None
            assert 3000 < last.result_bytes < 4000
