"""The action index: bytes by key, shared by processes, layered, with times of last use that no
clock can upset."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import diskcache
import pytest
from tests.harness.store_harness import (
    UNPRIVILEGED,
    Action,
    index_of,
    key_of,
    open_up,
    python,
    seal_off,
)

from ingot_artifacts.errors import OutputError, StoreReadOnly
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.index.index import ActionIndex
from ingot_artifacts.store.index.index_schema import SETTINGS

KEY, OTHER = key_of("key"), key_of("other")
HOUR_SECONDS = 3600


def used(index: ActionIndex) -> dict[bytes | None, float]:
    """Return the time of last use by key."""
    return {entry.key: entry.used for entry in index.scan()}


def test_what_is_put_can_be_got(tmp_path: Path) -> None:
    """Values come back in this instance, in another and in a later one; the newest counts."""
    index = index_of(tmp_path)
    assert index.get(KEY) is None
    index.put(KEY, b"first")
    other = index_of(tmp_path)
    assert other.get(KEY) == b"first"
    other.put(KEY, b"")
    assert index.get(KEY) == b""
    index.close()
    other.close()
    assert index_of(tmp_path).get(KEY) == b""


def test_many_are_put_together_and_listed_in_order(tmp_path: Path) -> None:
    """`items` is sorted by key, whatever the order of writing."""
    index = index_of(tmp_path)
    pairs = [(key_of(number), str(number).encode()) for number in range(100)]
    index.put_many(pairs)
    assert list(index.items()) == sorted(pairs)
    index.delete(pairs[0][0])
    index.delete(KEY)
    assert index.get(pairs[0][0]) is None
    assert len(list(index.items())) == 99


def test_values_have_a_limit(tmp_path: Path) -> None:
    """32 KiB fit; more is a bug of the caller, who has blobs for that."""
    index = index_of(tmp_path)
    index.put(KEY, bytes(32 << 10))
    assert index.get(KEY) == bytes(32 << 10)
    with pytest.raises(AssertionError):
        index.put(KEY, bytes((32 << 10) + 1))
    with pytest.raises(AssertionError):
        index.put(b"short", b"")


def test_lower_layers_are_asked_after_the_upper(tmp_path: Path) -> None:
    """A lower value is found, covered by an upper one, and not asked for again once its key was
    deleted."""
    lower = index_of(tmp_path / "lower")
    lower.put_many([(KEY, b"below"), (OTHER, b"below")])
    (tmp_path / "upper").mkdir()
    index = index_of(tmp_path / "upper", tmp_path / "none", tmp_path / "lower")
    assert index.get(KEY) == b"below"
    index.put(KEY, b"above")
    assert index.get(KEY) == b"above"
    assert index.get(OTHER) == b"below"
    index.delete(OTHER)
    assert index.get(OTHER) is None
    index.put(OTHER, b"again")
    assert index.get(OTHER) == b"again"
    assert lower.get(OTHER) == b"below"
    assert [key for key, _ in index.items()] == sorted((KEY, OTHER))


def test_a_read_only_index_serves_and_refuses(tmp_path: Path) -> None:
    """Reads see what a live writer has just written; writes are refused; uses are not noted,
    without an error."""
    writer = index_of(tmp_path)
    writer.put(KEY, b"value")
    index = index_of(tmp_path, read_only=True)
    assert index.get(KEY) == b"value"
    writer.put(OTHER, b"later")
    assert index.get(OTHER) == b"later"
    for refused in (lambda: index.put(KEY, b""), lambda: index.discard([1]), index.heal):
        with pytest.raises(StoreReadOnly):
            refused()
    index.touch([KEY])
    index.delete(KEY)
    assert index.get(KEY) is None
    assert writer.get(KEY) == b"value"


def test_a_cache_on_a_read_only_disk_serves(tmp_path: Path) -> None:
    """Without the right to make a file anywhere, records and blobs are read; opening it for writing
    is a clear error."""
    folder = tmp_path / "cache"
    action = Action(KEY, "rule", (b"content",))
    cache = Cache(str(folder))
    action.run(cache)
    cache.close()
    seal_off(folder)
    os.chmod(tmp_path, 0o755)
    for parent in tmp_path.parents:  # one folder more where tests run side by side
        if parent == Path(tempfile.gettempdir()):
            break
        os.chmod(parent, 0o755)
    code = f"""
import sys, msgpack
from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.index import index
from ingot_artifacts.store.index import index_database
from ingot_artifacts.store.index import index_reader
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.trust import Trust
{UNPRIVILEGED}
shared = Trust(shared=True)  # this user does not own it
cache = Cache(sys.argv[1], read_only=True, trust=shared)
key = bytes.fromhex(sys.argv[2])
assert cache.index.get(key) is not None
assert bytes(cache.blobs.get(sys.argv[3])) == b"content"
assert verify(cache).findings == ()
with cache.building():
    assert cache.leases.try_acquire(key)
try:
    Cache(sys.argv[1], trust=shared)
except OutputError as error:
    print(error)
"""
    try:
        done = python(code, str(folder), KEY.hex(), _digest(action))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("cannot use the cache\n  where: ")
        assert (
            "do: name another folder for the cache (--cache DIR), or use this one for reading alone (--read-only)"
            in done.stdout
        )
    finally:
        open_up(folder)


def _digest(action: Action) -> str:
    from tests.harness.store_harness import digest_of

    return digest_of(action.contents[0])


def test_settings_of_another_opener_do_not_stay(tmp_path: Path) -> None:
    """A plain diskcache with its own limit and eviction opens our folder: the next opener loses
    nothing."""
    index = index_of(tmp_path)
    index.put(KEY, b"value")
    index.close()
    settings: dict[str, Any] = {
        "size_limit": 1000,
        "eviction_policy": "least-recently-used",
        "statistics": 1,
    }
    diskcache.Cache(str(tmp_path / "index"), **settings).close()
    again = index_of(tmp_path)
    assert again.get(KEY) == b"value"
    again.put_many([(key_of(number), bytes(1000)) for number in range(200)])
    assert len(list(again.items())) == 201
    with closing(sqlite3.connect(tmp_path / "index" / "cache.db")) as database:
        kept = dict(database.execute("SELECT key, value FROM Settings"))
    assert {name: kept[name] for name in SETTINGS} == SETTINGS


def test_uses_are_noted_by_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A use within the hour costs no write; a later one is noted; unknown keys are no error."""
    index = index_of(tmp_path)
    index.put_many([(KEY, b""), (OTHER, b"")])
    start = used(index)[KEY]
    monkeypatch.setattr("time.time", lambda: start + HOUR_SECONDS / 2)
    index.touch([KEY])
    assert used(index)[KEY] == start
    monkeypatch.setattr("time.time", lambda: start + 2 * HOUR_SECONDS)
    index.touch([KEY, *(key_of(number) for number in range(2000))])
    assert used(index) == {KEY: start + 2 * HOUR_SECONDS, OTHER: used(index)[OTHER]}


def test_a_clock_that_is_set_back_upsets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values stay readable, a use is noted at the new time, and uses that lie ahead can be
    settled."""
    index = index_of(tmp_path)
    index.put_many([(KEY, b"a"), (OTHER, b"b")])
    monkeypatch.setattr("time.time", lambda: 1000.0)
    again = index_of(tmp_path)
    assert (again.get(KEY), again.get(OTHER)) == (b"a", b"b")
    again.touch([KEY])
    assert used(again)[KEY] == 1000
    again.put(key_of("new"), b"c")
    assert again.get(key_of("new")) == b"c"
    again.settle_times()
    assert set(used(again).values()) == {1000}


def test_a_deleted_folder_is_made_anew(tmp_path: Path) -> None:
    """Somebody deletes the cache while it is open: what it knew is missing, what is put then is
    kept."""
    cache = Cache(str(tmp_path / "cache"))
    cache.index.put(KEY, b"value")
    shutil.rmtree(tmp_path / "cache")
    assert cache.index.get(OTHER) is None
    cache.index.put(OTHER, b"again")
    cache.blobs.put(b"again")
    assert index_of(cache.folder).get(OTHER) == b"again"
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(OutputError):
        cache.index.put(OTHER, b"again")
    assert cache.index.get(OTHER) is None


def test_opening_a_cache_does_not_import_diskcache(tmp_path: Path) -> None:
    """The 20 ms are paid by who asks the index, not by who looks at blobs."""
    code = """
import sys
from ingot_artifacts.store.cache import Cache
cache = Cache(sys.argv[1])
cache.blobs.put(b"content")
cache.leases.try_acquire(bytes(32))
assert not {"diskcache", "sqlite3", "pickle", "msgpack", "numpy"} & set(sys.modules)
cache.index
assert "diskcache" in sys.modules
"""
    done = python(code, str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_a_cache_folder_is_private_and_tagged(tmp_path: Path) -> None:
    """Every folder of it has mode 0700; backup programs know it by its tag."""
    os.umask(os.umask(0o022))
    Cache(str(tmp_path / "a" / "cache")).close()
    folders = [path for path in (tmp_path / "a" / "cache").rglob("*") if path.is_dir()]
    assert len(folders) == 7
    assert {path.stat().st_mode & 0o777 for path in [tmp_path / "a" / "cache", *folders]} == {0o700}
    tag = (tmp_path / "a" / "cache" / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
