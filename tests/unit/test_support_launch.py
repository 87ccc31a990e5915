"""Fork-join with real threads: every index once, every way of waiting, fork, signals, errors."""

import ctypes
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.unit.support_harness import Image, Pool, image_of

from ingot_runtime.format import abi

_KERNELS = """
define i32 @add_one(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) {
entry:
  %data = load ptr, ptr %buffers, align 8
  %owner = ptrtoint ptr %scratch to i64
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i.next, %next ]
  %p = getelementptr i64, ptr %data, i64 %i
  %old = load i64, ptr %p, align 8
  %base = load i64, ptr %scalars, align 8
  %thread = sub i64 %owner, %base
  %mark = add i64 %thread, 1
  %new = add i64 %old, %mark
  store i64 %new, ptr %p, align 8
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %last
  br i1 %more, label %next, label %done
done:
  ret i32 0
}
define i32 @fail_late(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) {
  %late = icmp sgt i64 %first, 0
  %rc = select i1 %late, i32 6, i32 0
  ret i32 %rc
}
"""


@pytest.fixture(scope="module")
def image() -> Image:
    """Two kernels with the support code of this machine."""
    return image_of(_KERNELS, ["add_one", "fail_late"])


def run(
    image: Image, pool: int, extent: int, grain: int, kernel: int = 0, watch: int = 0
) -> tuple[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Launch once over zeros; each element becomes 1 + 1000 * (number of the thread that ran
    it)."""
    data = np.zeros(max(extent, 1), dtype=np.int64)
    buffers = (ctypes.c_uint64 * 1)(data.ctypes.data)
    base = 1 << 40
    scalars = (ctypes.c_int64 * 1)(base)
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    launch = image.function(
        "launch",
        ctypes.c_int32,
        pointer,
        pointer,
        pointer,
        pointer,
        word,
        word,
        pointer,
        word,
        pointer,
    )
    code = launch(
        pool,
        image.kernels[kernel],
        ctypes.addressof(buffers),
        ctypes.addressof(scalars),
        extent,
        grain,
        base,
        1000,
        watch,
    )
    return code, data


@pytest.mark.parametrize("spin", [0, 100, 20000])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_every_index_runs_once_on_its_thread(image: Image, spin: int, n_threads: int) -> None:
    """Chunk t covers [extent*t/chunks, extent*(t+1)/chunks) on thread t, whatever the waiting."""
    pool = Pool(image, n_threads, spin)
    for extent, grain in [
        (0, 1),
        (1, 1),
        (2, 1),
        (7, 3),
        (100, 1),
        (1001, 10),
        (50, 1000),
        (9, 0),
    ] * 20:
        code, data = run(image, pool.page, extent, grain)
        chunks = min(n_threads, max(1, extent // max(grain, 1)))
        expected = [
            1 + 1000 * t
            for t in range(chunks)
            for _ in range(extent * t // chunks, extent * (t + 1) // chunks)
        ]
        assert code == 0
        assert data[:extent].tolist() == expected
    pool.stop()


def test_without_a_pool_the_caller_runs_everything(image: Image) -> None:
    """A null pool means inline."""
    code, data = run(image, 0, 10, 1)
    assert (code, data.tolist()) == (0, [1] * 10)


def test_a_worker_reports_its_error(image: Image) -> None:
    """The first code other than 0 is the result, and the pool works afterwards."""
    pool = Pool(image, 2, 10)
    assert run(image, pool.page, 10, 1, kernel=1)[0] == abi.RC_LIMIT
    assert run(image, pool.page, 10, 1)[0] == 0
    pool.stop()


@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # Python 3.12 on: the test forks with threads on purpose
def test_a_forked_child_hears_that_its_threads_are_lost(image: Image) -> None:
    """In a child the page reads 0: large launches return THREADS_LOST instead of hanging, the
    parent goes on."""
    pool = Pool(image, 2, 0)
    child = os.fork()
    if child == 0:
        os._exit(run(image, pool.page, 10, 1)[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == abi.RC_THREADS_LOST
    assert run(image, pool.page, 10, 1)[0] == 0
    pool.stop()


def test_interrupts_do_not_disturb_the_pool(image: Image) -> None:
    """SIGINT with parked workers reaches Python, and later launches are right."""
    pool = Pool(image, 2, 0)
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        seen.append(number)

    former = signal.signal(signal.SIGINT, note)
    try:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGINT)
            assert run(image, pool.page, 100, 1)[1].tolist() == [1] * 50 + [1001] * 50
    finally:
        signal.signal(signal.SIGINT, former)
    assert seen
    pool.stop()


def test_parked_workers_use_no_time(image: Image) -> None:
    """After its spin budget a worker sleeps."""
    pool = Pool(image, 2, 100)
    run(image, pool.page, 10, 1)
    deadline = time.monotonic() + 300  # ends a test that hangs
    while not _others_sleep() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert _others_sleep()
    pool.stop()


def _others_sleep() -> bool:
    """Whether every other thread of this process waits in the kernel: one that spins is running or
    ready to."""
    own = str(threading.get_native_id())
    others = [name for name in os.listdir("/proc/self/task") if name != own]
    states = [
        Path(f"/proc/self/task/{name}/stat").read_text().rpartition(")")[2].split()[0]
        for name in others
    ]
    assert states
    return set(states) == {"S"}
