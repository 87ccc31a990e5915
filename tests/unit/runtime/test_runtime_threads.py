"""Threads are lent and returned: fork, Ctrl-C, two callers, sessions dropped while they run."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.harness.interrupted_child import run_interrupted
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.executor.session import Session
from ingot_runtime.loader import pool

LARGE = np.ones((400_000, WIDTH), np.float32)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "dynamic.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def thread_count() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `usable_threads` give what is asked for, so that the pool is there on any machine."""

    def as_asked(asked: int) -> int:
        return asked

    monkeypatch.setattr("ingot_runtime.load_bundle.usable_threads", as_asked)


def test_usable_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more than the affinity mask or the group's quota allow, never less than one."""

    def eight(_: int) -> set[int]:
        return set(range(8))

    monkeypatch.setattr(os, "sched_getaffinity", eight)
    for quota, asked, expected in ((0, 4, 4), (0, 16, 8), (3, 16, 3), (1, 16, 1), (0, 1, 1)):
        monkeypatch.setattr(pool, "group_quota", lambda quota=quota: quota)
        assert pool.usable_threads(asked) == expected


@pytest.mark.usefixtures("two_processors")
def test_threads_come_and_go(bundle: Path) -> None:
    """A pool has threads - 1 workers; a dropped session has joined them; results are the same
    bits."""
    before = thread_count()
    x = LARGE[:9999]
    for _ in range(20):
        session = ingot_runtime.load(bundle, threads=3)
        assert thread_count() == before + 2
        assert (session.run({"x": x})["y"] == tiny_reference(x)).all()
        del session
        deadline = time.monotonic() + 300
        while thread_count() > before and time.monotonic() < deadline:
            time.sleep(0.001)  # a joined thread may be visible a moment longer
        assert thread_count() == before


@pytest.mark.usefixtures("two_processors")
def test_fork(bundle: Path) -> None:
    """A forked child makes itself a new pool, and the parent's works on."""
    session = ingot_runtime.load(bundle, threads=2)
    x = LARGE[:5000]
    expected = tiny_reference(x)
    session.run({"x": x})
    child = os.fork()
    if child == 0:
        try:
            good = (session.run({"x": x})["y"] == expected).all() and thread_count() == 2
            os._exit(0 if good else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (session.run({"x": x})["y"] == expected).all()


@pytest.mark.usefixtures("two_processors")
def test_sessions_of_their_own_in_several_threads(bundle: Path) -> None:
    """Each thread with a session of its own is right, all at once."""
    x = LARGE[:20_000]
    expected = tiny_reference(x)
    results: list[bool] = []

    def call() -> None:
        session = ingot_runtime.load(bundle, threads=2)
        results.extend(bool((session.run({"x": x})["y"] == expected).all()) for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 20


@pytest.mark.usefixtures("two_processors")
def test_dropped_while_running(bundle: Path) -> None:
    """A session whose last reference goes while a call runs lives until that call ends."""
    results: list[bool] = []

    def call(sessions: list[Session]) -> None:
        results.append(bool((sessions.pop().run({"x": LARGE})["y"] == tiny_reference(LARGE)).all()))

    thread = threading.Thread(target=call, args=([ingot_runtime.load(bundle, threads=2)],))
    thread.start()
    thread.join()
    assert results == [True]


def test_interrupt_and_exit(bundle: Path) -> None:
    """Ctrl-C takes effect when `main` returns; an interpreter with parked workers exits at once,
    session and all."""
    text = """
import sys, numpy as np, ingot_runtime
from ingot_runtime import load_bundle as module
module.usable_threads = lambda asked: asked
session = ingot_runtime.load(sys.argv[1], threads=2)
x = np.ones((400_000, 8), np.float32)
session.run({"x": x})
print("ready", flush=True)
try:
    while True:
        session.run({"x": x})
except KeyboardInterrupt:
    print((session.run({"x": x})["y"] == session.run({"x": x})["y"]).all(), flush=True)
"""
    code, out, err = run_interrupted(text, str(bundle), settle_seconds=0.1, limit_seconds=300)
    assert (code, out) == (0, "True\n"), err


@pytest.mark.broad
def test_exit_while_running(bundle: Path) -> None:
    """An interpreter that ends while a daemon thread is inside `main` ends well."""
    text = """
import sys, threading, numpy as np, ingot_runtime
from ingot_runtime import load_bundle as module
module.usable_threads = lambda asked: asked
session = ingot_runtime.load(sys.argv[1], threads=2)
x = np.ones((400_000, 8), np.float32)
session.run({"x": x})
def call():
    while True:
        session.run({"x": x})
threading.Thread(target=call, daemon=True).start()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", text, str(bundle)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
