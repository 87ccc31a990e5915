"""Leases: one holder, whoever it is; a dead holder's are free at once; a collection and a build
never meet."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from tests.harness.store_harness import key_of, python, start_python

from ingot_artifacts.store.leases import CacheInUseError, Leases

KEY, OTHER = key_of("key"), key_of("other")
HOLD = """
import sys
from ingot_artifacts.store.leases import Leases
leases = Leases(sys.argv[1])
assert leases.try_acquire(bytes.fromhex(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""
BUILD = """
import sys
from ingot_artifacts.store.leases import Leases
with Leases(sys.argv[1]).building():
    print("building", flush=True)
    sys.stdin.read()
"""


def test_one_holder_in_a_process(tmp_path: Path) -> None:
    """Two objects of one process exclude each other; other actions are free."""
    first, second = Leases(str(tmp_path)), Leases(str(tmp_path / "." / "x" / ".."))
    assert first.try_acquire(KEY)
    assert not first.try_acquire(KEY)
    assert not second.try_acquire(KEY)
    assert second.try_acquire(OTHER)
    first.release(KEY)
    assert second.try_acquire(KEY)
    first.close()
    assert not second.try_acquire(KEY)
    second.close()


def test_closing_one_object_keeps_the_leases_of_the_other(tmp_path: Path) -> None:
    """A second cache object is opened and closed in this process: others still see the first one's
    lease."""
    first, second = Leases(str(tmp_path)), Leases(str(tmp_path))
    assert first.try_acquire(KEY)
    second.close()
    code = "import sys\nfrom ingot_artifacts.store.leases import Leases\nprint(Leases(sys.argv[1]).try_acquire(bytes.fromhex(sys.argv[2])))"
    assert python(code, str(tmp_path), KEY.hex()).stdout == "False\n"
    first.close()
    assert python(code, str(tmp_path), KEY.hex()).stdout == "True\n"


def test_a_killed_holder_leaves_its_lease(tmp_path: Path) -> None:
    """While the holder lives nobody else gets it; as soon as it is dead anybody does."""
    leases = Leases(str(tmp_path))
    with start_python(HOLD, str(tmp_path), KEY.hex()) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not leases.try_acquire(KEY)
        assert leases.try_acquire(OTHER)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert leases.try_acquire(KEY)
    leases.close()


def test_a_forked_worker_has_no_lease_of_its_parent(tmp_path: Path) -> None:
    """A worker neither holds nor, by its end, drops what its parent holds."""
    leases = Leases(str(tmp_path))
    assert leases.try_acquire(KEY)
    worker = os.fork()
    if worker == 0:
        refused = not leases.try_acquire(KEY)
        leases.close()
        os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 0
    code = "import sys\nfrom ingot_artifacts.store.leases import Leases\nprint(Leases(sys.argv[1]).try_acquire(bytes.fromhex(sys.argv[2])))"
    assert python(code, str(tmp_path), KEY.hex()).stdout == "False\n"
    leases.close()


def test_a_lease_outlives_no_holder_through_its_workers(tmp_path: Path) -> None:
    """The holder is killed while a worker that it forked lives on: the lease is free all the
    same."""
    code = HOLD.replace('print("held", flush=True)', "import os\nos.write(1, b'%d\\n' % os.fork())")
    leases = Leases(str(tmp_path))
    with start_python(code, str(tmp_path), KEY.hex()) as holder:
        assert holder.stdout is not None
        worker = max(int(holder.stdout.readline()), int(holder.stdout.readline()))
        assert not leases.try_acquire(KEY)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert leases.try_acquire(KEY)
        os.kill(worker, signal.SIGKILL)
    leases.close()


def test_threads_share_out_actions(tmp_path: Path) -> None:
    """Of 8 threads that want each of 200 actions, exactly one gets each."""
    leases = Leases(str(tmp_path))
    taken: list[int] = []

    def take() -> None:
        taken.extend(number for number in range(200) if leases.try_acquire(key_of(number)))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(200))
    leases.close()


def test_a_collection_waits_for_no_build_and_names_it(tmp_path: Path) -> None:
    """Another process builds: the cache cannot be had alone, the error tells which process; killed,
    it can."""
    leases = Leases(str(tmp_path))
    with start_python(BUILD, str(tmp_path)) as builder:
        assert builder.stdout is not None
        builder.stdout.readline()
        with leases.building(), pytest.raises(CacheInUseError), leases.alone():
            pass
        with pytest.raises(CacheInUseError) as caught, leases.alone():
            pass
        assert caught.value.why == f"process {builder.pid} builds"
        assert "--wait" in caught.value.do
        os.kill(builder.pid, signal.SIGKILL)
        with leases.alone(wait_seconds=5):
            pass
    leases.close()


def test_a_build_waits_for_a_collection(tmp_path: Path) -> None:
    """It is told whom it waits for, and goes on when the collection ends; builds do not wait for
    each other."""
    leases = Leases(str(tmp_path))
    waited: list[int] = []
    began = threading.Event()

    def build() -> None:
        with leases.building(waited.append), leases.building():
            began.set()

    thread = threading.Thread(target=build)
    with leases.alone():
        thread.start()
        assert not began.wait(0.15)
    assert began.wait(5)
    thread.join()
    assert waited == [os.getpid()]
    with leases.alone():
        pass
    leases.close()


def test_a_read_only_cache_has_leases_of_its_own(tmp_path: Path) -> None:
    """Without a file to lock, leases exclude within the process; nothing is written."""
    leases = Leases(str(tmp_path / "none"), read_only=True)
    assert leases.try_acquire(KEY)
    assert not leases.try_acquire(KEY)
    leases.release(KEY)
    assert leases.try_acquire(KEY)
    with leases.building():
        pass
    leases.close()
    assert list(tmp_path.iterdir()) == []
