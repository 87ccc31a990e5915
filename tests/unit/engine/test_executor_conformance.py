"""What every executor must keep: each submission has one outcome, its own; errors, cancels and lost
workers end one action alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.executor_harness import (
    ELSEWHERE,
    JOBS,
    KINDS,
    STOPPING,
    Place,
    opened,
    outcome_of,
    run_all,
    spec_of,
)
from tests.hostile.engine_harness import (
    CALL,
    PARTS,
    WORK,
    Call,
    Work,
    WrongError,
    padding_of,
    processes_about,
    read_log,
    value_of,
    wait_for,
)

from ingot_artifacts.store.blob_file import blob_path
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome

every_kind = pytest.mark.parametrize("kind", KINDS)


def artifact_of(place: Place, value: int) -> Artifact[int]:
    """An artifact that no process has in memory."""
    content, _ = place.values.codec.encode(value)
    return Artifact(place.cache.blobs.put(content), place.values)


def check_result(place: Place, outcome: Outcome, value: int, padding: bytes) -> None:
    """The result is what the rule gives, its artifacts are named, and our cache has them with the
    right bytes."""
    assert (outcome.error, outcome.lost, outcome.cancelled) == (None, "", False)
    result, refs = place.values.codec.decode_with_refs(outcome.result, place.values)
    assert outcome.refs == refs
    assert len(refs) == 2
    assert result[0].value() == value
    assert bytes(place.cache.blobs.get(result[1].digest)) == padding


@pytest.mark.broad
@every_kind
def test_results_are_complete_and_right(tmp_path: Path, kind: str) -> None:
    """More actions than run at once, some with artifacts among their inputs: each has its own
    result."""
    with opened(kind, tmp_path) as (executor, place):
        parts = tuple(artifact_of(place, value) for value in (5, 6))
        works = [Work(number, parts[: number % 3]) for number in range(7)]
        outcomes = run_all(executor, [spec_of(WORK, work, place.values) for work in works])
        assert len(outcomes) == 7
        for work, outcome in zip(works, outcomes, strict=True):
            numbers = [5, 6][: work.number % 3]
            check_result(place, outcome, value_of(work.number, numbers), padding_of(work.number))
            assert outcome.seconds > 0


@pytest.mark.broad
@every_kind
def test_an_action_loads_the_code_that_its_inputs_name(tmp_path: Path, kind: str) -> None:
    """The function goes with the action; what the rulebook does not list, or the inputs do not
    name, is not loaded."""
    with opened(kind, tmp_path) as (executor, place):
        good, unlisted = (
            spec_of(CALL, Call(f"{CALL.compute.__module__}:{name}", 5), place.values)
            for name in ("add_one", "never_listed")
        )
        unnamed = spec_of(WORK, Work(1, do="load"), place.values)
        where = f"{CALL.compute.__module__}:add_one"
        assert [(code.name, code.digest) for code in good.loaded] == [(where, f"module {where}")]
        assert unnamed.loaded == ()
        found, *refused = run_all(executor, [good, unlisted, unnamed])
        assert place.values.codec.decode(found.result, place.values) == 6
        for outcome in refused:
            assert isinstance(outcome.error, ActionError)
            assert "is not among the code that the action's inputs may name" in outcome.error.why


@pytest.mark.broad
@every_kind
def test_equal_actions_are_two_submissions(tmp_path: Path, kind: str) -> None:
    """An executor is no cache: what is submitted twice has two outcomes, which are the same."""
    with opened(kind, tmp_path) as (executor, place):
        first, second = run_all(executor, [spec_of(WORK, Work(3), place.values)] * 2)
        assert (first.result, first.refs) == (second.result, second.refs)


@pytest.mark.broad
@every_kind
def test_capacity_is_what_can_be_submitted(tmp_path: Path, kind: str) -> None:
    """Each submission takes one from it, each outcome gives it back; more than one action runs at
    once where it says so."""
    log = tmp_path / "log"
    with opened(kind, tmp_path) as (executor, place):
        free = executor.capacity()
        assert 1 <= free <= JOBS
        handles = {
            executor.submit(spec_of(WORK, Work(number, (), str(log)), place.values))
            for number in range(free)
        }
        assert executor.capacity() == 0
        if kind in ELSEWHERE:
            assert free == JOBS
            wait_for(lambda: [line.what for line in read_log(log)].count("begin") == JOBS)
        while handles:
            handles -= {handle for handle, _ in executor.wait(None)}
        wait_for(executor.capacity)
        assert executor.wait(0) == []


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_wait_ends_when_its_time_is_over(tmp_path: Path, kind: str) -> None:
    """While nothing has ended, a wait with a limit returns nothing, and what runs goes on."""
    log = tmp_path / "log"
    with opened(kind, tmp_path) as (executor, place):
        executor.submit(spec_of(WORK, Work(1, (), str(log), do="child"), place.values))
        wait_for(lambda: read_log(log))
        assert executor.wait(0.01) == []


@every_kind
@pytest.mark.parametrize("wrong", ["raise", "bug", "sys.exit"])
@pytest.mark.sweep(10)
def test_an_error_ends_its_action_alone(tmp_path: Path, kind: str, wrong: str) -> None:
    """It has the class and the four parts that it was raised with, references as references; what
    is run after it is run."""
    with opened(kind, tmp_path) as (executor, place):
        works = [Work(1, do=wrong), Work(2)]
        failed, good = run_all(executor, [spec_of(WORK, work, place.values) for work in works])
        check_result(place, good, value_of(2, ()), padding_of(2))
        error = failed.error
        if wrong == "raise":
            assert isinstance(error, WrongError)
            assert error.parts == PARTS
        else:
            assert isinstance(error, ActionError)
        assert (failed.result, failed.refs) == (b"", ())


@pytest.mark.broad
@every_kind
def test_an_action_of_another_program_is_refused(tmp_path: Path, kind: str) -> None:
    """Another rule, another version of it, inputs of another kind: an error that says which, and no
    crash."""
    with opened(kind, tmp_path) as (executor, place):
        right = spec_of(WORK, Work(1), place.values)
        wrong = [
            replace(right, rule="play"),
            replace(right, version=2),
            replace(right, inputs=b"noise"),
        ]
        outcomes = run_all(executor, [*wrong, right])
        texts = [str(outcome.error) for outcome in outcomes[:3]]
        assert all(
            text.startswith("a process cannot run an action\n  where: rule ") for text in texts
        )
        for text, part in zip(
            texts, ("no such rule", "expected version 2, got version 1", "inputs"), strict=True
        ):
            assert part in text
        check_result(place, outcomes[3], value_of(1, ()), padding_of(1))


@every_kind
def test_a_lost_artifact_is_named(tmp_path: Path, kind: str) -> None:
    """An input that vanished after the action was made: no error and no result, but the digest of
    what has to be made again."""
    with opened(kind, tmp_path) as (executor, place):
        part = artifact_of(place, 5)
        action = spec_of(WORK, Work(1, (part,)), place.values)
        os.unlink(blob_path(place.cache.folder, part.digest))
        (outcome,) = run_all(executor, [action])
        assert (outcome.lost, outcome.error, outcome.result) == (part.digest, None, b"")
        artifact_of(place, 5)
        (outcome,) = run_all(executor, [action])
        check_result(place, outcome, value_of(1, [5]), padding_of(1))


@pytest.mark.broad
@every_kind
def test_a_cancelled_action_has_one_outcome(tmp_path: Path, kind: str) -> None:
    """Cancelled before it ran, or stopped, or its own result; never both; others are not touched;
    afterwards all goes on."""
    log = tmp_path / "log"
    with opened(kind, tmp_path) as (executor, place):
        handle = executor.submit(spec_of(WORK, Work(1, (), str(log)), place.values))
        executor.cancel(handle)
        executor.cancel(handle)
        outcome = outcome_of(executor, handle)
        if outcome.cancelled:
            assert (outcome.result, outcome.refs, outcome.error) == (b"", (), None)
            assert not [line for line in read_log(log) if line.what == "end"]
        else:
            check_result(place, outcome, value_of(1, ()), padding_of(1))
        assert outcome.cancelled == (kind in STOPPING)
        executor.cancel(handle)
        assert executor.wait(0) == []
        (outcome,) = run_all(executor, [spec_of(WORK, Work(2), place.values)])
        check_result(place, outcome, value_of(2, ()), padding_of(2))


@pytest.mark.broad
@pytest.mark.parametrize("kind", ELSEWHERE)
@pytest.mark.parametrize("wrong", ["kill", "segfault", "exit"])
def test_a_lost_worker_is_an_error_of_its_action(tmp_path: Path, kind: str, wrong: str) -> None:
    """Whoever runs an action dies: that action fails in four parts, the executor takes as many as
    before."""
    with opened(kind, tmp_path) as (executor, place):
        works = [Work(1, do=wrong), Work(2), Work(3)]
        outcomes = run_all(executor, [spec_of(WORK, work, place.values) for work in works])
        assert isinstance(outcomes[0].error, ActionError)
        assert all(
            (
                outcomes[0].error.what,
                outcomes[0].error.where,
                outcomes[0].error.why,
                outcomes[0].error.do,
            )
        )
        for work, outcome in zip(works[1:], outcomes[1:], strict=True):
            check_result(place, outcome, value_of(work.number, ()), padding_of(work.number))
        assert executor.capacity() == JOBS


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_close_at_once_leaves_no_process(tmp_path: Path, kind: str) -> None:
    """Actions that would run for an hour, and what they started, are gone."""
    log = tmp_path / "log"
    with opened(kind, tmp_path) as (executor, place):
        for number in range(JOBS):
            executor.submit(spec_of(WORK, Work(number, (), str(log), do="child"), place.values))
        wait_for(lambda: len(read_log(log)) == JOBS)
        executor.close(kill=True)
    wait_for(lambda: not processes_about(str(tmp_path)))
    wait_for(lambda: not processes_about(f"a child of a rule for {os.getpid()}"))
