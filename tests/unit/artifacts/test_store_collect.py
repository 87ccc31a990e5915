"""A collection keeps what was used last and what roots name, deletes the rest, and says so; a check
finds nothing after it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.harness.store_harness import Action, actions, build, digest_of, key_of, sql, start_python

from ingot_artifacts.errors import ArtifactError, StoreReadOnly
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.collect import gc
from ingot_artifacts.store.leases import CacheInUseError
from ingot_artifacts.store.lookup import FoundBlob, FoundRecord, look_up
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.stats import stat


def set_used(cache: Cache, action: Action, seconds: float) -> None:
    """Say when an action was used last."""
    sql(cache, ("UPDATE Cache SET access_time = ? WHERE key = ?", (seconds, action.key)))


def filled(folder: Path, count: int = 10) -> tuple[Cache, list[Action]]:
    """Make a cache of actions with 1,000 bytes each, the first one used longest ago."""
    cache = Cache(str(folder))
    made = [
        Action(key_of(number), f"rule{number % 2}", (bytes([number]) * 1000,))
        for number in range(count)
    ]
    for number, action in enumerate(made):
        action.run(cache)
        set_used(cache, action, 1000.0 + number)
    return cache, made


def kept(cache: Cache, made: list[Action]) -> list[int]:
    """Return the numbers of the actions that the cache still has, with their results."""
    found = [
        number for number, action in enumerate(made) if cache.index.get(action.key) is not None
    ]
    assert [
        number
        for number, action in enumerate(made)
        if cache.blobs.has(digest_of(action.contents[0]))
    ] == found
    return found


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    """Half the size: the newer half stays; the report's numbers are those of the disk."""
    cache, made = filled(tmp_path)
    report = gc(cache, stat(cache).size_bytes // 2)
    assert kept(cache, made) == [5, 6, 7, 8, 9]
    assert report.size_bytes_after == stat(cache).size_bytes <= report.size_bytes_before // 2
    assert (report.record_count_before, report.record_count_after) == (10, 5)
    assert (report.blob_count_before, report.blob_count_after) == (10, 5)
    assert report.forgotten == (("rule0", 3), ("rule1", 2))
    assert verify(cache).findings == ()


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """It reports what the real one then does, also on a cache that is only read."""
    cache, made = filled(tmp_path)
    (tmp_path / "v1" / "tmp" / "left").write_bytes(bytes(10))
    dry = gc(cache, 3600, dry_run=True)
    assert gc(Cache(str(tmp_path), read_only=True), 3600, dry_run=True) == dry
    assert kept(cache, made) == list(range(10))
    assert gc(cache, 3600) == dry
    with pytest.raises(StoreReadOnly):
        gc(Cache(str(tmp_path), read_only=True), 3600)


def test_a_shared_blob_stays_while_anybody_needs_it(tmp_path: Path) -> None:
    """Forgetting one of two records frees what only it needed."""
    cache = Cache(str(tmp_path))
    shared, own = bytes(5000), b"x" * 5000
    old, new = (
        Action(key_of("old"), "rule", (shared, own)),
        Action(key_of("new"), "rule", (shared,)),
    )
    for seconds, action in ((1.0, old), (2.0, new)):
        action.run(cache)
        set_used(cache, action, seconds)
    gc(cache, 6000)
    assert cache.blobs.has(digest_of(shared))
    assert not cache.blobs.has(digest_of(own))
    assert cache.index.get(new.key)


def test_roots_keep_records_and_blobs_whatever_the_size(tmp_path: Path) -> None:
    """A root's records stay with all they need, and so does a blob that it names; the report counts
    both."""
    cache, made = filled(tmp_path)
    loose = cache.blobs.put(b"named by a root alone")
    cache.roots.add("dist/a.ingot", [made[0].key, key_of("unknown")], [loose])
    cache.roots.add("empty", [])
    assert [root.name for root in cache.roots.roots()] == ["dist/a.ingot", "empty"]
    report = gc(cache, 0)
    assert kept(cache, made) == [0]
    assert cache.blobs.has(loose)
    first, second = report.roots
    assert (first.root.name, len(first.keys), len(first.digests)) == ("dist/a.ingot", 1, 2)
    assert report.size_bytes_after == first.size_bytes
    assert second.size_bytes == 0
    assert cache.roots.remove("dist/a.ingot")
    assert not cache.roots.remove("dist/a.ingot")
    gc(cache, 0)
    assert stat(cache).size_bytes == 0


@pytest.mark.parametrize("name", ["", ".", "../../escape", "a/b", "x" * 500, "ü"])
def test_a_root_may_have_any_name(tmp_path: Path, name: str) -> None:
    """A name is no path."""
    cache = Cache(str(tmp_path))
    cache.roots.add(name, [key_of(1)], ["0" * 64])
    cache.roots.add(name, [key_of(2)])
    (root,) = cache.roots.roots()
    assert (root.name, root.keys, root.digests) == (name, (key_of(2),), ())
    assert len(list((tmp_path / "v1" / "roots").iterdir())) == 1


def test_a_record_in_a_blob_keeps_its_blobs(tmp_path: Path) -> None:
    """A large record is a blob itself: it and what it names stay together, and go together."""
    cache = Cache(str(tmp_path))
    large = Action(key_of("large"), "rule", (b"result",), large=True)
    large.run(cache)
    assert len(gc(cache, 10**9).roots) == 0
    assert build(cache, [large]) == 0
    gc(cache, 0)
    assert stat(cache).blob_count == 0


def test_leftovers_and_quarantine_go(tmp_path: Path) -> None:
    """Files of killed writers, folders and damaged blobs: deleted, and their size is reported."""
    cache, made = filled(tmp_path)
    (tmp_path / "v1" / "tmp" / "left").write_bytes(bytes(100))
    (tmp_path / "v1" / "quarantine" / "index.1234").mkdir()
    (tmp_path / "v1" / "quarantine" / "index.1234" / "cache.db").write_bytes(bytes(200))
    (tmp_path / "v1" / "quarantine" / "link").symlink_to("/etc/passwd")
    loose = cache.blobs.put(b"nobody needs this")
    report = gc(cache, 10**9)
    assert report.leftover_bytes > 300
    assert (
        list((tmp_path / "v1" / "tmp").iterdir())
        == list((tmp_path / "v1" / "quarantine").iterdir())
        == []
    )
    assert not cache.blobs.has(loose)
    assert kept(cache, made) == list(range(10))
    assert Path("/etc/passwd").exists()


def test_a_use_is_what_counts(tmp_path: Path) -> None:
    """The oldest record is used again: it stays, the next oldest goes."""
    cache, made = filled(tmp_path)
    cache.index.touch([made[0].key])
    gc(cache, 3600)
    assert kept(cache, made) == [0, 8, 9]


def test_uses_before_the_clock_was_set_back(tmp_path: Path) -> None:
    """Times that lie ahead count as now, and age from then on."""
    cache, made = filled(tmp_path)
    set_used(cache, made[0], time.time() + 10**8)
    gc(cache, 3600)
    assert kept(cache, made) == [0, 8, 9]
    assert all(entry.used <= time.time() for entry in cache.index.scan())


def test_never_while_a_build_runs(tmp_path: Path) -> None:
    """A build of another process, or of this one: nothing is deleted, the error says who builds."""
    cache, made = filled(tmp_path)
    with cache.building(), pytest.raises(CacheInUseError) as caught:
        gc(cache, 0)
    assert caught.value.why == f"process {os.getpid()} builds"
    code = """
import sys
from ingot_artifacts.store.cache import Cache
with Cache(sys.argv[1]).building():
    print("building", flush=True)
    sys.stdin.read()
"""
    with start_python(code, str(tmp_path)) as builder:
        assert builder.stdout is not None
        builder.stdout.readline()
        with pytest.raises(CacheInUseError):
            gc(cache, 0)
        assert kept(cache, made) == list(range(10))
        assert builder.stdin is not None
        builder.stdin.close()
        gc(cache, 0, wait_seconds=10)
    assert kept(cache, made) == []


def test_a_damaged_root_stops_a_collection(tmp_path: Path) -> None:
    """What it keeps is not known; a check moves it away, and then the collection goes on."""
    cache, made = filled(tmp_path)
    cache.roots.add("root", [made[0].key])
    (path,) = (tmp_path / "v1" / "roots").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    with pytest.raises(ArtifactError) as caught:
        gc(cache, 0)
    assert "root" in caught.value.what
    assert [finding.kind for finding in verify(cache).findings] == ["root"]
    gc(cache, 0)
    assert kept(cache, made) == []


def test_collections_and_builds_alternate(tmp_path: Path) -> None:
    """After each collection, of any size, a build runs what is gone and nothing else; no result is
    ever wrong."""
    cache = Cache(str(tmp_path))
    wanted = actions(60, seed=3)
    assert build(cache, wanted) == 60
    size_bytes = stat(cache).size_bytes
    for share in (1.0, 0.9, 0.5, 0.1, 0.0):
        report = gc(cache, int(size_bytes * share))
        assert report.size_bytes_after <= size_bytes * share
        assert verify(cache).findings == ()
        assert build(cache, wanted) == report.record_count_before - report.record_count_after
        assert stat(cache).unreachable_bytes == 0


def test_stat_counts_by_rule(tmp_path: Path) -> None:
    """Records, blobs and bytes of each rule; what no record needs is told apart."""
    cache, _ = filled(tmp_path, 4)
    cache.blobs.put(b"loose")
    cache.roots.add("root", [])
    found = stat(cache)
    assert (found.record_count, found.blob_count, found.unreachable_bytes, found.root_count) == (
        4,
        5,
        5,
        1,
    )
    assert [
        (item.rule, item.record_count, item.blob_count, item.blob_bytes) for item in found.rules
    ] == [
        ("rule0", 2, 2, 2000),
        ("rule1", 2, 2, 2000),
    ]


def test_look_up_tells_records_and_blobs(tmp_path: Path) -> None:
    """A key's record with what it needs, a blob with who needs it, and the roots that keep
    either."""
    cache, made = filled(tmp_path, 3)
    digest = digest_of(made[1].contents[0])
    cache.roots.add("root", [made[1].key])
    (record,) = look_up(cache, made[1].key.hex()[:12])
    assert isinstance(record, FoundRecord)
    assert (record.facts.rule, record.blobs, record.roots) == (
        "rule1",
        ((digest, 1000),),
        ("root",),
    )
    assert record.facts.ingredients == (("name", made[1].key.hex()),)
    (blob,) = look_up(cache, digest)
    assert blob == FoundBlob(digest, 1000, ((made[1].key.hex(), "rule1"),), ("root",))
    assert look_up(cache, "0" * 64) == ()
    assert len(look_up(cache, "")) == 6
