"""Worker processes that die, print, read, start children: one action fails with a clear error,
everything else goes on."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.harness.executor_harness import spec_of
from tests.hostile.engine_harness import (
    BOOK,
    WORK,
    Work,
    WrongError,
    fold,
    folded,
    open_scheduler,
    processes_about,
    ran,
    read_log,
    value_of,
    wait_for,
)

from ingot_build_rules.engine.actions.action import Task
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.errors import ActionError, BuildStoppedError
from ingot_build_rules.engine.actions.naive import NaiveBuild
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.executors.executor import Handle
from ingot_build_rules.engine.scheduler import Policy, Scheduler

KEEP_GOING = Policy(keep_going=True)


async def one(build: Build, work: Work) -> int:
    """Work on one number."""
    return await build.value((await build.need(WORK, work))[0])


async def two(build: Build, first: Work, second: Work) -> int:
    """Work on one number, then on another with its result."""
    part = (await build.need(WORK, first))[0]
    return await one(build, Work(second.number, (part,), do=second.do))


def all_of(build: Scheduler, wrong: str, seconds: float = 0.0) -> list[Task]:
    """Ask for twelve numbers, one of which goes wrong, one that needs it, and one that needs
    another."""
    goals = [
        one(build, Work(number, (), "", seconds, wrong if number == 3 else ""))
        for number in range(12)
    ]
    goals += [two(build, Work(3, do=wrong), Work(20)), two(build, Work(4), Work(20))]
    return build.run_all(goals)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("raise", WrongError, "wrong"),
        (
            "exit",
            ActionError,
            "a worker process died\n  where: rule work\n  why: it ended with status 7\n",
        ),
        (
            "kill",
            ActionError,
            "a worker process died\n  where: rule work\n  why: signal 9 ended it\n",
        ),
        (
            "segfault",
            ActionError,
            "a worker process died\n  where: rule work\n  why: signal 11 ended it\n",
        ),
        ("bug", ActionError, "a bug in Ingot stopped an action"),
        ("sys.exit", ActionError, "a bug in Ingot stopped an action"),
    ],
)
def test_what_fails_fails_alone(
    tmp_path: Path, wrong: str, error: type[Exception], message: str
) -> None:
    """However an action ends its worker: all that does not need it is built, the error says what
    happened; once."""
    with open_scheduler(tmp_path, 2, KEEP_GOING) as build:
        tasks = all_of(build, wrong)
        for number in (3, 12):
            assert type(tasks[number].error) is error
            assert str(tasks[number].error).startswith(message)
        rest = [task.result for number, task in enumerate(tasks) if number not in (3, 12)]
        assert rest == [
            *(value_of(number, ()) for number in range(12) if number != 3),
            value_of(20, [value_of(4, ())]),
        ]
        assert ran(build) == 12
    assert processes_about(str(tmp_path)) == []
    with open_scheduler(tmp_path, 2, KEEP_GOING) as build:
        assert all(task.error is None for task in all_of(build, ""))
        assert ran(build) == 2


@pytest.mark.broad
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("wrong", ["raise", "bug", "sys.exit"])
def test_errors_do_not_depend_on_where_a_rule_runs(tmp_path: Path, jobs: int, wrong: str) -> None:
    """The same classes and texts from this process, from a worker, from the naive build."""
    naive = NaiveBuild(BOOK)
    with pytest.raises((WrongError, ActionError)) as expected:
        naive.run(one(naive, Work(3, do=wrong)))
    with open_scheduler(tmp_path, jobs, KEEP_GOING) as build:
        error = all_of(build, wrong)[3].error
        assert (type(error), str(error)) == (expected.type, str(expected.value))


@pytest.mark.broad
@pytest.mark.parametrize("jobs", [1, 2])
def test_without_keep_going_nothing_begins_after_a_failure(tmp_path: Path, jobs: int) -> None:
    """What runs already ends and is kept; what has not begun is not run; the next build goes on
    from there."""
    with open_scheduler(tmp_path, jobs) as build:
        tasks = all_of(build, "raise", 0.05)
        kinds = [type(task.error) for task in tasks]
        assert kinds[:3] == [type(None)] * 3
        assert kinds[3] is WrongError
        assert set(kinds[4:11]) <= {BuildStoppedError, type(None)}
        assert kinds[11] is BuildStoppedError
        done = ran(build)
    with open_scheduler(tmp_path, jobs) as build:
        assert all(task.error is None for task in all_of(build, ""))
        assert ran(build) == 14 - done


@pytest.mark.broad
def test_a_worker_that_dies_idle_is_replaced(tmp_path: Path) -> None:
    """Who is killed while he has nothing to do fails nothing."""
    with open_scheduler(tmp_path, 2) as build:
        assert build.run(fold(build, range(4))) == folded(range(4))
        for process in processes_about(str(tmp_path)):
            os.kill(process, signal.SIGKILL)
            os.waitid(
                os.P_PID, process, os.WEXITED | os.WNOWAIT
            )  # its memory is gone before its exit can be seen
        assert build.run(fold(build, range(10, 18))) == folded(range(10, 18))


@pytest.mark.broad
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("noise", ["print", "read"])
def test_what_a_rule_prints_and_reads_is_not_a_message(
    tmp_path: Path, jobs: int, noise: str
) -> None:
    """Standard output and input of a rule have nothing to do with the pipes to its worker."""
    with open_scheduler(tmp_path, jobs) as build:
        work = [
            Work(number, do=noise if jobs > 1 or noise == "print" else "") for number in range(4)
        ]
        assert [task.result for task in build.run_all([one(build, item) for item in work])] == [
            value_of(number, ()) for number in range(4)
        ]


def test_children_of_a_rule_end_with_its_worker(tmp_path: Path) -> None:
    """The programs that a rule calls are not left over, when the build is stopped and when the
    worker is killed."""
    log = tmp_path / "log"

    def children() -> list[int]:
        return processes_about(f"a child of a rule for {os.getpid()}")

    def kill_worker() -> None:
        wait_for(children)
        os.kill(read_log(log)[-1].process, signal.SIGKILL)

    assert children() == []
    with suppress(KeyboardInterrupt), open_scheduler(tmp_path / "first", 2) as build:
        build.executor.submit(spec_of(WORK, Work(1, log=str(log), do="child"), build.values))
        wait_for(children)
        raise KeyboardInterrupt
    wait_for(lambda: not children())
    with open_scheduler(tmp_path / "second", 2) as build:
        handle = build.executor.submit(
            spec_of(WORK, Work(1, log=str(log), do="child"), build.values)
        )
        kill_worker()
        ended: list[tuple[Handle, Outcome]] = []
        while not ended:
            ended = build.executor.wait(10)
        ((found, outcome),) = ended
        assert found is handle
        assert "signal 9" in str(outcome.error)
        wait_for(lambda: not children())


def test_temporary_files_of_workers_go_with_them(tmp_path: Path) -> None:
    """What a killed worker had in its temporary folder is deleted when the build ends, also by
    Ctrl-C."""
    for stop in (False, True):
        with suppress(KeyboardInterrupt), open_scheduler(tmp_path, 2, KEEP_GOING) as build:
            assert all_of(build, "temporary")[3].error is not None
            assert len(list((tmp_path / "v1" / "tmp").rglob("left"))) == 1
            if stop:
                raise KeyboardInterrupt
        assert list((tmp_path / "v1" / "tmp").iterdir()) == []


def test_a_worker_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more processes: one clear error."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    with (
        pytest.raises(ActionError, match="a worker process cannot be started"),
        open_scheduler(tmp_path, 2) as build,
    ):
        build.run(fold(build, range(4)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_names_that_are_not_utf8(tmp_path: Path, jobs: int) -> None:
    """Paths and messages need not be text; a folder may have the letter in its name that separates
    folders elsewhere."""
    folder = os.fsdecode(bytes(tmp_path) + b"/a:b \xff\xfe")
    for expected in (1, 0):
        with open_scheduler(folder, jobs) as build:
            work = Work(1, log=f"{folder}/log", do="surrogate")
            task = build.run_all([one(build, work)])[0]
            assert (task.result, task.error) == (value_of(1, ()), None)
            assert [action.messages for _, action in task.trace] == [("\udcff",)]
            assert ran(build) == expected
