"""Fork-join with real threads: every index once, every way of waiting, stalls, fork, signals,
errors."""

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.support_harness import Image, Pool, address_of, image_of, pack

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
define i32 @meet(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) {
  %data = load ptr, ptr %buffers, align 8
  %released = getelementptr i64, ptr %data, i64 1
  %owner = ptrtoint ptr %scratch to i64
  %base = load i64, ptr %scalars, align 8
  %thread = sub i64 %owner, %base
  %is.caller = icmp eq i64 %thread, 0
  br i1 %is.caller, label %await, label %claim
claim:
  store atomic i64 1, ptr %data seq_cst, align 8
  br label %await
await:
  %word = phi ptr [ %data, %0 ], [ %released, %claim ]
  br label %look
look:
  %seen = load atomic i64, ptr %word seq_cst, align 8
  %go = icmp ne i64 %seen, 0
  br i1 %go, label %done, label %look
done:
  ret i32 0
}
"""
# `meet`: the caller's pieces wait until a worker has claimed one (word 0), and the worker's until
# word 1 lets them go.
_ADD_ONE, _FAIL_LATE, _MEET = range(3)
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64
_CLOCK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))


@pytest.fixture(scope="module")
def image() -> Image:
    """Three kernels with the support code of this machine."""
    return image_of(_KERNELS, ["add_one", "fail_late", "meet"])


def launch(
    image: Image, pool: int, data: int, extent: int, grain: int, kernel: int, watch: int = 0
) -> int:
    """Launch a kernel over data at an address; the scratch of thread t is 1000 * t behind the
    scalar."""
    buffers = (ctypes.c_uint64 * 1)(data)
    base = 1 << 40
    scalars = (ctypes.c_int64 * 1)(base)
    function = image.function(
        "launch",
        ctypes.c_int32,
        *(_POINTER, _POINTER, _POINTER, _POINTER, _WORD, _WORD, _POINTER, _WORD, _POINTER),
    )
    where = (ctypes.addressof(buffers), ctypes.addressof(scalars))
    return function(pool, image.kernels[kernel], *where, extent, grain, base, 1000, watch)


def run(
    image: Image, pool: int, extent: int, grain: int, kernel: int = _ADD_ONE
) -> tuple[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Launch once over zeros; each element becomes 1 + 1000 * (number of the thread that ran
    it)."""
    data = np.zeros(max(extent, 1), dtype=np.int64)
    return launch(image, pool, data.ctypes.data, extent, grain, kernel), data


@pytest.mark.parametrize("spin", [0, 100, 20000])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_every_index_runs_once(image: Image, spin: int, n_threads: int) -> None:
    """Each index is run by one thread of the pool, whatever the waiting; a range that is worth one
    thread by the caller."""
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
        threads = 1 if extent < 2 * max(grain, 1) else n_threads
        assert code == 0
        assert set(data[:extent].tolist()) <= {1 + 1000 * t for t in range(threads)}
    pool.stop()


def test_no_worker_is_waited_for(image: Image) -> None:
    """A worker that does not get to run has claimed nothing: the caller runs everything."""
    pool = Pool(image, 3, 100, start=False)
    for extent in (2, 100, 5000):
        code, data = run(image, pool.page, extent, 1)
        assert (code, data.tolist()) == (0, [1] * extent)


def _release(data: "np.ndarray[tuple[int], np.dtype[np.int64]]", before: Callable[[], None]) -> int:
    """Wait in a thread until a worker is inside of `meet`, then let it go."""
    words = data.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))

    def release() -> None:
        while not words[0]:
            time.sleep(0)
        before()
        words[1] = 1

    threading.Thread(target=release).start()
    return int(data.ctypes.data)


def test_claimed_pieces_are_waited_for(image: Image) -> None:
    """A launch does not end while a worker is inside of a piece."""
    pool = Pool(image, 2, 0)
    for _ in range(5):
        data = np.zeros(2, dtype=np.int64)
        ended: list[bool] = []
        address = _release(data, partial(ended.append, False))
        assert launch(image, pool.page, address, 1000, 1, _MEET) == 0
        assert ended == [False]
        assert data.tolist() == [1, 1]
    pool.stop()


def test_after_a_stall_the_caller_runs_alone_for_a_time(image: Image) -> None:
    """A worker that kept the caller waiting gets no work for 16 times as long, then it does."""
    pool = Pool(image, 2, 0)
    milliseconds = 1

    def clock(_number: int, time_of: Any) -> int:
        time_of[0], time_of[1] = divmod(milliseconds * 1_000_000, 1_000_000_000)
        return 0

    def stall() -> None:
        nonlocal milliseconds
        while not pool.read("caller_parked"):
            time.sleep(0)
        milliseconds += 10

    function = _CLOCK(clock)
    watch = pack(abi.WATCH, {"clock": address_of(function)})
    watched = ctypes.addressof(watch)
    data = np.zeros(2, dtype=np.int64)
    assert launch(image, pool.page, _release(data, stall), 1000, 1, _MEET, watched) == 0
    milliseconds += 159
    data = np.zeros(1000, dtype=np.int64)
    epoch = pool.read("epoch")
    assert launch(image, pool.page, data.ctypes.data, 1000, 1, _ADD_ONE, watched) == 0
    assert (pool.read("epoch"), set(data.tolist())) == (epoch, {1})
    milliseconds += 1
    assert launch(image, pool.page, data.ctypes.data, 1000, 1, _ADD_ONE, watched) == 0
    assert pool.read("epoch") == epoch + 1
    pool.stop()


def test_a_short_call_wakes_no_worker(image: Image) -> None:
    """If the call before took one thread less than 300 microseconds, the caller runs alone until
    this one has taken as long; if it is not known, a thread is woken."""
    pool = Pool(image, 2, 0)
    nanoseconds = 0

    def clock(_number: int, time_of: Any) -> int:
        nonlocal nanoseconds
        nanoseconds += 50_000
        time_of[0], time_of[1] = 0, nanoseconds
        return 0

    function = _CLOCK(clock)
    watch = pack(abi.WATCH, {"clock": address_of(function)})
    watched = ctypes.addressof(watch)
    data = np.zeros(40, dtype=np.int64)

    def epoch_after(work_before: int) -> int:
        while not pool.read("parked"):
            time.sleep(0)
        pool.write("work_before", work_before, "Q")
        assert launch(image, pool.page, data.ctypes.data, 40, 1, _ADD_ONE, watched) == 0
        return pool.read("epoch")

    assert epoch_after(0) == 1
    pool.write("work", 0, "Q")
    assert [epoch_after(299_999) for _ in range(7)] == [1] * 6 + [2]
    pool.write("work", 0, "Q")
    assert epoch_after(300_000) == 3
    pool.stop()


def test_without_a_pool_the_caller_runs_everything(image: Image) -> None:
    """A null pool means inline."""
    code, data = run(image, 0, 10, 1)
    assert (code, data.tolist()) == (0, [1] * 10)


def test_a_failing_piece_ends_the_launch(image: Image) -> None:
    """A code other than 0 is the result, and the pool works afterwards."""
    pool = Pool(image, 2, 10)
    assert run(image, pool.page, 1000, 1, _FAIL_LATE)[0] == abi.RC_LIMIT
    assert run(image, pool.page, 1000, 1)[0] == 0
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
            assert set(run(image, pool.page, 100, 1)[1].tolist()) <= {1, 1001}
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
