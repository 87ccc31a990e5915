"""The loader in C on threads that its caller lends: the bits are those of its own threads, whatever
threads there are and in whatever order they come."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import CBundle, Options, Threads, options

import ingot
import ingot_runtime

Task = Callable[[ctypes.c_void_p], None]
Run = Callable[[int, Callable[[], None]], None]
_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
MODEL = Path(__file__).parents[2] / "models" / "resnet" / "static.onnx"


def lent(count: int, run: Run) -> Options:
    """Options with ``run``, which gets the count of calls to make and what to call."""

    def adapted(_: int, calls: int, task: int, argument: int) -> None:
        call = _TASK(task)
        run(calls, lambda: call(argument))

    chosen = options(threads=count)
    hook = _RUN(adapted)
    chosen.lent = ctypes.pointer(Threads(ctypes.cast(hook, ctypes.c_void_p), None))
    chosen.kept_hook = hook
    return chosen


def at_once(count: int, task: Callable[[], None]) -> None:
    """Each call on a thread of its own."""
    threads = [threading.Thread(target=task) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_turn(count: int, task: Callable[[], None]) -> None:
    """All calls on the caller's thread, one after the other."""
    for _ in range(count):
        task()


def elsewhere(count: int, task: Callable[[], None]) -> None:
    """One after the other on another thread."""
    other = threading.Thread(target=in_turn, args=(count, task))
    other.start()
    other.join()


def too_few(count: int, task: Callable[[], None]) -> None:
    """One call instead of all."""
    assert count > 1
    task()


def too_many(count: int, task: Callable[[], None]) -> None:
    """Twice as many."""
    at_once(2 * count, task)


def none(count: int, task: Callable[[], None]) -> None:
    """A pool that has ended."""


RUNS = (at_once, in_turn, elsewhere, too_few, too_many, none)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lent") / "m.ingot"
    ingot.compile(MODEL, targets=["x86-64-v2"]).save(path)
    return path


@pytest.mark.parametrize("run", RUNS)
def test_same_bits(bundle: Path, run: Run) -> None:
    """Over several calls, loading included; the caller's threads are asked for while it loads and
    in the first call."""
    asked: list[int] = []
    has_two = len(os.sched_getaffinity(0)) > 1  # a thread for each processor at most

    def counted(count: int, task: Callable[[], None]) -> None:
        asked.append(count)
        run(count, task)

    with ingot_runtime.load(bundle) as session:
        (spec,) = session.inputs
        shape = tuple(int(size) for size in spec.shape)
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        wanted = {name: array.tobytes() for name, array in session.run({spec.name: x}).items()}
    with CBundle(bundle, lent(2, counted)) as loaded:
        assert asked == [2] * has_two
        for _ in range(3):
            found = loaded.run({spec.name: x})
            assert {name: array.tobytes() for name, array in found.items()} == wanted
    assert len(asked) >= 2 * has_two
    assert set(asked) <= {2}


def test_one_thread_asks_for_none(bundle: Path) -> None:
    """It computes where it was called."""

    def refused(count: int, task: Callable[[], None]) -> None:
        raise AssertionError

    with CBundle(bundle, lent(1, refused)) as loaded:
        loaded.call()


def test_a_forked_child_computes(bundle: Path) -> None:
    """With whatever threads its pool has there."""
    with CBundle(bundle, lent(2, in_turn)) as loaded:
        loaded.call()
        wanted = loaded.output(0).tobytes()
        child = os.fork()
        if child == 0:
            loaded.call()
            os._exit(0 if loaded.output(0).tobytes() == wanted else 1)
        assert os.waitpid(child, 0)[1] == 0
