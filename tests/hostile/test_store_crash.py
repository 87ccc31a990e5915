"""The store survives what happens to processes and disks: kill -9, a full disk at any write, many
builders, collections between."""

from __future__ import annotations

import errno
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import diskcache
import pytest
from tests.harness.store_harness import (
    Action,
    actions,
    blobs_of,
    build,
    digest_of,
    key_of,
    python,
    start_python,
)
from tests.tidy.source import ROOT

from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.blobs import BlobMissing
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.collect import gc
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.stats import stat
from ingot_runtime.format.msgpack_canonical import pack

KILLS = 20
VALUE = pack({"refs": [], "rule": "rule", "result": bytes(20_000)})
BUILDER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.harness.store_harness import actions, build
from ingot_artifacts.store.cache import Cache
"""
# Runs one action after the other and says which are done.
WRITER = f"""{BUILDER}
cache = Cache(sys.argv[1])
cache.index
print("open", flush=True)
with cache.building():
    for number, action in enumerate(actions(250, seed=7)):
        if cache.index.get(action.key) is None:
            action.run(cache)
        print(number, flush=True)
"""
# Builds 20 random subsets and forgets random records in between; every result is compared inside.
SHARER = f"""{BUILDER}
import random
cache = Cache(sys.argv[1])
wanted = actions(120, seed=9)
generator = random.Random(int(sys.argv[2]))
ran = 0
for _ in range(20):
    with cache.building():
        ran += build(cache, generator.sample(wanted, 40))
        for action in generator.sample(wanted, 5):
            cache.index.delete(action.key)
print(ran)
"""


def read_numbers(process: subprocess.Popen[str]) -> int:
    """Return how many actions a killed writer has said to be done."""
    assert process.stdout is not None
    return len([line for line in process.stdout.read().split() if line.isdecimal()])


@pytest.mark.slow
def test_kill_9_at_twenty_points(tmp_path: Path) -> None:
    """What a killed writer had finished is there, whole; no record without its blobs; the next one
    goes on from there."""
    generator = random.Random(4)
    wanted = actions(250, seed=7)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        with start_python(WRITER, str(folder)) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(generator.random() * 0.04)
            os.kill(writer.pid, signal.SIGKILL)
            done = read_numbers(writer)
        cache = Cache(str(folder))
        assert verify(cache).findings == ()
        assert build(cache, wanted[:done]) == 0
        assert build(cache, wanted) <= len(wanted) - done
        gc(cache, 10**9)
        assert os.listdir(os.path.join(cache.folder, "tmp")) == []
        assert build(cache, wanted) == 0
        cache.close()


@pytest.mark.slow
def test_kill_9_while_the_cache_is_made(tmp_path: Path) -> None:
    """A writer killed at any point of its first 60 ms leaves a folder that the next one opens."""
    for number in range(KILLS):
        folder = str(tmp_path / str(number))
        code = f"{BUILDER}\nprint('start', flush=True)\nCache(sys.argv[1]).index.put(bytes(32), {VALUE!r})"
        with start_python(code, folder) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(number * 0.003)
            os.kill(writer.pid, signal.SIGKILL)
        cache = Cache(folder)
        assert cache.index.get(bytes(32)) in (None, VALUE)
        assert build(cache, actions(5)) == 5
        assert verify(cache).findings == ()
        cache.close()


@pytest.mark.slow
def test_eight_builders_share_a_cache(tmp_path: Path) -> None:
    """Eight processes, 20 random builds each, records deleted between them: no wrong byte, no
    error, a sound cache."""
    builders = [start_python(SHARER, str(tmp_path), str(number)) for number in range(8)]
    try:
        outputs = [builder.communicate(timeout=300)[0] for builder in builders]
        assert [builder.returncode for builder in builders] == [0] * 8
    finally:
        for builder in builders:
            builder.kill()
            builder.wait()
    assert all(int(output) > 0 for output in outputs)
    cache = Cache(str(tmp_path))
    assert verify(cache).findings == ()
    assert os.listdir(os.path.join(cache.folder, "tmp")) == []


@pytest.mark.slow
def test_builders_and_collections_alternate(tmp_path: Path) -> None:
    """Collections to half the size come between the builds of three processes, never into one."""
    cache = Cache(str(tmp_path))
    builders = [start_python(SHARER, str(tmp_path), str(number)) for number in range(3)]
    collections = 0
    try:
        while any(builder.poll() is None for builder in builders):
            gc(cache, stat(cache).size_bytes // 2, wait_seconds=60)
            collections += 1
            time.sleep(0.02)
        assert [builder.returncode for builder in builders] == [0] * 3
    finally:
        for builder in builders:
            builder.kill()
            builder.communicate()
    assert collections
    assert verify(cache).findings == ()


@pytest.mark.slow
def test_the_database_is_spoiled_under_builders(tmp_path: Path) -> None:
    """Noise over the index five times while four processes build: each heals or goes on, no result
    is wrong."""
    Cache(str(tmp_path)).index.put(key_of("first"), b"")
    builders = [start_python(SHARER, str(tmp_path), str(number)) for number in range(4)]
    generator = random.Random(3)
    try:
        for _ in range(5):
            time.sleep(0.1)
            # By another process: closing the file here would drop SQLite's locks of this one.
            python(
                "import sys\nfile = open(sys.argv[1], 'r+b')\nfile.seek(int(sys.argv[2]))\nfile.write(bytes(range(256)) * 8)",
                str(tmp_path / "v1" / "index" / "cache.db"),
                str(generator.randrange(20) * 1024),
            )
        for builder in builders:
            builder.communicate(timeout=300)
        assert [builder.returncode for builder in builders] == [0] * 4
    finally:
        for builder in builders:
            builder.kill()
            builder.wait()
    cache = Cache(str(tmp_path))
    verify(cache)
    wanted = actions(120, seed=9)
    build(cache, wanted)
    assert build(cache, wanted) == 0


def test_a_limit_of_file_sizes_is_an_error_in_four_parts(tmp_path: Path) -> None:
    """A large blob or an index that cannot grow: an error, nothing left behind, all that was there
    still there."""
    code = f"""{BUILDER}
import os, resource
VALUE = {VALUE!r}
from ingot_artifacts.errors import OutputError
cache = Cache(sys.argv[1])
build(cache, actions(20))
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
failed = []
for number in range(3000):
    try:
        cache.blobs.put(bytes(4_000_000)) if number == 0 else cache.index.put(number.to_bytes(32, "big"), VALUE)
    except OutputError as error:
        assert error.what and error.where and error.why and error.do, error
        failed.append(error)
    if len(failed) == 2:
        break
assert len(failed) == 2, failed
print(failed[0]); print(failed[1])
assert build(cache, actions(20)) == 0
assert os.listdir(cache.folder + "/tmp") == []
late = Cache(sys.argv[1])
assert build(late, actions(20)) == 0
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
assert build(cache, actions(30)) == 10
cache.index.put(bytes(32), VALUE)
"""
    done = python(code, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (
        "why: File too large\n  do: lift the limit of file sizes, or choose another disk"
        in done.stdout
    )
    assert "cannot write the cache's index" in done.stdout
    cache = Cache(str(tmp_path))
    assert os.listdir(os.path.join(cache.folder, "quarantine")) == []
    assert verify(cache).findings == ()
    assert build(cache, actions(30)) == 0


def test_a_full_disk_at_any_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space in each system call that writes a blob, also in the middle: an error, nothing left,
    and it works again."""
    content = bytes(range(256)) * 1000
    make, write = os.open, os.write

    def no_space(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(descriptor: int, view: memoryview) -> int:
        return (
            no_space()
            if view.nbytes < len(content)
            else write(descriptor, view[: len(content) // 2])
        )

    def no_new_file(path: str, flags: int, mode: int = 0o777) -> int:
        return no_space() if flags & os.O_CREAT else make(path, flags, mode)

    calls: list[tuple[str, Callable[..., object]]] = [
        ("open", no_new_file), ("write", no_space), ("write", half), ("rename", no_space),
    ]  # fmt: skip
    store = blobs_of(tmp_path)
    store.put(b"before")
    for name, call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, call)
            with pytest.raises(OutputError) as caught:
                store.put(content)
        assert caught.value.do == "free space, or choose another disk"
        assert caught.value.exit_code == 1
        assert os.listdir(tmp_path / "tmp") == []
        with pytest.raises(BlobMissing):
            store.get(digest_of(content))
        assert bytes(store.get(digest_of(b"before"))) == b"before"
    assert bytes(store.get(store.put(content))) == content


def test_a_full_disk_under_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite finds no space at any statement: an error in four parts, no healing of what is not
    damaged, and it goes on."""
    cache = Cache(str(tmp_path))
    cache.index.put(key_of("before"), b"before")
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def refuse(*_: object) -> object:
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(diskcache.Cache, "set", refuse)
        with pytest.raises(OutputError) as caught:
            cache.index.put(key_of("after"), b"after")
    assert caught.value.why == "database or disk is full"
    assert cache.index.get(key_of("before")) == b"before"
    cache.index.put(key_of("after"), b"after")
    assert cache.index.get(key_of("after")) == b"after"
    assert os.listdir(os.path.join(cache.folder, "quarantine")) == []


def test_ctrl_c_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle of a write, or between making the file and knowing it."""
    store = blobs_of(tmp_path)
    store.put(b"before")
    make = os.open

    def interrupted_write(*_: object) -> int:
        raise KeyboardInterrupt

    def interrupted_open(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = make(path, flags, mode)
        if not flags & os.O_CREAT:
            return descriptor
        os.close(descriptor)
        raise KeyboardInterrupt

    for name, call in (("write", interrupted_write), ("open", interrupted_open)):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, call)
            with pytest.raises(KeyboardInterrupt):
                store.put(b"content")
        assert os.listdir(tmp_path / "tmp") == []
    assert bytes(store.get(store.put(b"content"))) == b"content"


def test_a_record_is_written_after_its_blobs(tmp_path: Path) -> None:
    """An action whose blob cannot be written leaves no record."""
    cache = Cache(str(tmp_path))
    shelf = Path(cache.folder) / "cas" / "sha256"
    shelf.rmdir()
    shelf.write_bytes(b"")
    action = Action(key_of("action"), "rule", (b"content",))
    with pytest.raises(OutputError):
        action.run(cache)
    assert cache.index.get(action.key) is None
    assert [finding.kind for finding in verify(cache).findings] == ["foreign"]
    action.run(cache)
    assert verify(cache).findings == ()
