"""A file that is changed while it is loaded, verified and run: right numbers, or an error of the
loader, in all the ways there are."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import library
from tests.hostile import changing_file, trials
from tests.hostile.attacks import attacked
from tests.hostile.loaders import LOADERS, Running
from tests.hostile.tiny import (
    WEIGHTS_SECTION_BYTES,
    WIDTH,
    tiny_contents,
    tiny_reference,
    tree_entry,
)

from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.loader import sigbus

QUICK_SCHEDULES = 20
SLOW_SCHEDULES = 1000
QUICK_VERIFICATIONS = 12
SLOW_VERIFICATIONS = 300
QUICK_SESSIONS = 60
SLOW_SESSIONS = 300
X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.mark.broad
def test_each_change_at_each_moment(tmp_path: Path) -> None:
    """The end of each is known: right, ChangedError or DigestError; who lost pages stays dead, a
    new load of the file is right."""
    ends = trials.run_driver("changing_file", str(tmp_path), "cases", seconds=600)
    assert {end: cases for end, cases in ends.items() if end != "as expected"} == {}
    cases = len(LOADERS) * len(changing_file.EXPECTED) * len(changing_file.MOMENTS)
    assert len(ends["as expected"]) == cases


def require_schedules(folder: Path, count: int, expected: frozenset[str]) -> None:
    """Random changes from another thread or process: each load and run ends in a way that it
    may; some end as ``expected``. When a change meets a run is up to the machine: few schedules may
    have no such end."""
    ends = trials.run_driver("changing_file", str(folder), str(count), seconds=3600)
    seen = {end: set(end.split(", ")) for end in ends}
    assert {
        end: ends[end] for end, parts in seen.items() if not parts <= set(changing_file.ENDS)
    } == {}
    assert sum(map(len, ends.values())) == count
    assert expected <= set().union(*seen.values())


@pytest.mark.broad
def test_some_schedules(tmp_path: Path) -> None:
    """20 random schedules."""
    require_schedules(tmp_path, QUICK_SCHEDULES, frozenset({"right"}))


@pytest.mark.slow
def test_many_schedules(tmp_path: Path) -> None:
    """1,000 random schedules."""
    require_schedules(tmp_path, SLOW_SCHEDULES, frozenset({"right", "ChangedError"}))


def require_verified(folder: Path, count: int) -> None:
    """Damage is found by 1, 2 and 4 threads, also where none can be started; a file that is cut is
    an error."""
    ends = trials.run_driver("parallel_verification", str(folder), str(count), seconds=3600)
    assert set(ends) <= {
        "found",
        *trials.GOOD,
        "DigestError",
        "FormatError",
    }  # the last: cut before it was mapped
    assert len(ends["found"]) == count
    assert sum(map(len, ends.values())) == 2 * count
    assert ends["ChangedError"]


@pytest.mark.broad
def test_some_parallel_verifications(tmp_path: Path) -> None:
    """12 places of damage, 12 cuts."""
    require_verified(tmp_path, QUICK_VERIFICATIONS)


@pytest.mark.slow
def test_many_parallel_verifications(tmp_path: Path) -> None:
    """300 of each."""
    require_verified(tmp_path, SLOW_VERIFICATIONS)


def many_sessions(folder: Path, count: int, loader: str) -> str:
    """Load from many files, share some, cut them all: every session notices, and nothing is
    left."""
    load = LOADERS[loader]
    # This is a child: sessions that other tests have left in it keep their handler, beneath a new
    # one.
    sigbus._installed, sigbus._tables = {}, {}  # pyright: ignore[reportPrivateUsage]
    content = (folder / "m.ingot").read_bytes()
    paths = [folder / f"{index}.ingot" for index in range(count)]
    before = trials.held()
    del before["memory"]  # the list of guarded ranges grows, and keeps its rows
    for path in paths:
        _write_sparse(path, content)
    sessions = [load(path) for path in paths]
    shared = [sessions[0].another() for _ in range(20)]
    for path in paths:
        path.write_bytes(content[:-WEIGHTS_SECTION_BYTES])
    ends = {trials.verdict(partial(_is_right, session)) for session in (*sessions, *shared)}
    for path in paths:
        path.unlink()
    while sessions:
        (shared or sessions).pop().close()
    if sigbus._installed:  # pyright: ignore[reportPrivateUsage]
        return "the handler is still installed"
    return trials.leaked(before) or ", ".join(ends)


def _write_sparse(path: Path, content: bytes) -> None:
    block_bytes = 1 << 16
    with path.open("wb") as file:
        file.truncate(len(content))
        for at in range(0, len(content), block_bytes):
            if any(content[at : at + block_bytes]):
                file.seek(at)
                file.write(content[at : at + block_bytes])


def _is_right(session: Running) -> bool:
    return bool((session.run({"x": X})["y"] == tiny_reference(X)).all())


def require_guarded(folder: Path, count: int, loader: str) -> None:
    """Sessions of `count` files, and 20 more of one of them, in one process: all are guarded;
    sessions of one file share one mapping."""
    write_bundle(tiny_contents("batch"), folder / "m.ingot", tree_entry)
    library()
    assert trials.in_fresh_child(partial(many_sessions, folder, count, loader)) == "ChangedError"


@pytest.mark.broad
@attacked
def test_every_session_is_guarded(tmp_path: Path, loader: str) -> None:
    """60 files and 80 sessions."""
    require_guarded(tmp_path, QUICK_SESSIONS, loader)


@pytest.mark.slow
@attacked
def test_every_one_of_many_sessions_is_guarded(tmp_path: Path, loader: str) -> None:
    """300 files and 320 sessions."""
    require_guarded(tmp_path, SLOW_SESSIONS, loader)


def test_change_within_one_tick_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that has just changed is trusted when the clock that stamps files has moved on: not
    before."""
    path = tmp_path / "m.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    session = LOADERS["python"](path)
    waits: list[float] = []
    path.chmod(0o600)
    stopped = path.stat().st_ctime_ns

    def clock(_: int) -> int:
        return stopped + len(waits) // 2  # it moves on after the second wait

    monkeypatch.setattr("ingot_runtime.format.file.time.clock_gettime_ns", clock)
    monkeypatch.setattr("ingot_runtime.format.file.time.sleep", waits.append)
    assert _is_right(session)
    assert len(waits) == 2


def test_driver_sees_a_wrong_answer() -> None:
    """A verdict on wrong numbers, foreign exceptions, signals and leaks is not a good one."""
    bodies: dict[str, Callable[[], str]] = {
        "wrong": lambda: trials.verdict(lambda: False),
        "foreign FileNotFoundError": lambda: trials.verdict(lambda: bool(open("/nowhere"))),  # noqa: SIM115
        "signal 9": _die,
        "leak": _leak,
    }
    for end, body in bodies.items():
        got = trials.in_fresh_child(body)
        assert got.startswith(end)
        assert not trials.is_good(got)


def _die() -> str:
    signal.raise_signal(signal.SIGKILL)
    return "right"


def _leak() -> str:
    before = trials.held()
    kept = open("/proc/self/maps", encoding="ascii")  # noqa: SIM115
    return f"{trials.leaked(before)}{kept.closed}"
