"""A cache keeps itself below its limit: the sum that it keeps is never too small, and what goes is
what was used longest ago and no root needs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.store_harness import Action, actions, build, key_of, start_python
from tests.tidy.source import ROOT
from tests.unit.artifacts.test_store_collect import filled, kept

from ingot_artifacts.store import limit as limits
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.collect import gc
from ingot_artifacts.store.limit import keep_limit, limit_bytes
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.stats import stat
from ingot_artifacts.store.tally import Tally, add_size, count_anew, read_tally

GB = 10**9


def size_path(cache: Cache) -> Path:
    """Return the file with the sum."""
    return Path(cache.folder, "size")


def test_the_oldest_go_until_a_quarter_of_the_limit_is_free(tmp_path: Path) -> None:
    """Above the limit, what was used last stays, with room for the next builds; below it, nothing is
    done and the cache is not even looked at."""
    cache, made = filled(tmp_path, 20)
    size_bytes = stat(cache).size_bytes
    assert keep_limit(cache, size_bytes) is None
    found = keep_limit(cache, size_bytes - 1)
    assert found is not None
    assert not found.is_missed
    assert found.size_bytes_before == size_bytes
    assert found.size_bytes_after == stat(cache).size_bytes <= size_bytes * 3 / 4
    numbers = kept(cache, made)
    assert numbers == list(range(20 - len(numbers), 20))
    assert 13 <= len(numbers) <= 15
    assert verify(cache).findings == ()
    assert keep_limit(cache, size_bytes - 1) is None


def test_nobody_looks_at_a_cache_whose_sum_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum is enough: a build that has written little does not read a cache of any size."""
    cache, _ = filled(tmp_path)
    keep_limit(cache, GB)
    monkeypatch.setattr(limits, "take_survey", None)
    monkeypatch.setattr(limits, "gc", None)
    build(cache, actions(10))
    assert keep_limit(cache, GB) is None


@pytest.mark.parametrize("count", [0, 1, 30])
def test_the_sum_is_what_was_written(tmp_path: Path, count: int) -> None:
    """From the first count on it follows every blob and record, by whichever object they are
    written; a collection makes it exact."""
    cache = Cache(str(tmp_path))
    build(cache, actions(count))
    keep_limit(cache, GB)
    tally = read_tally(cache.folder)
    assert tally is not None
    assert tally.size_bytes == stat(cache).size_bytes
    other = Cache(str(tmp_path))
    build(other, actions(count, seed=1))
    written = read_tally(cache.folder)
    assert written is not None
    assert written.size_bytes >= stat(cache).size_bytes
    assert written.size_bytes - stat(cache).size_bytes <= 100 * count
    gc(cache, stat(cache).size_bytes // 2)
    assert read_tally(cache.folder) == Tally(stat(cache).size_bytes, 0, stat(cache).size_bytes)


def test_the_default_leaves_as_much_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit of the user's: 20 GB, and on a small or full disk half of what would be free
    without the cache."""

    disk = os.statvfs(tmp_path)

    def free(size_bytes: int) -> None:
        values = list(disk)
        values[1], values[4] = 4096, size_bytes // 4096
        monkeypatch.setattr(os, "statvfs", {str(tmp_path): os.statvfs_result(values)}.__getitem__)

    for size_bytes, free_bytes, expected in (
        (0, 1000 * GB, 20 * GB),
        (37 * GB, 1000 * GB, 20 * GB),
        (10 * GB, 4 * GB, 7 * GB),
        (10 * GB, 0, 5 * GB),
        (0, 0, 0),
    ):
        free(free_bytes)
        assert limit_bytes(str(tmp_path / "not" / "there"), size_bytes, None) == pytest.approx(
            expected, abs=4096
        )
        assert limit_bytes(str(tmp_path), size_bytes, 3 * GB) == 3 * GB


def test_roots_are_kept_and_a_missed_limit_is_said_once(tmp_path: Path) -> None:
    """What roots keep stays; the report says that the limit was missed; the next collection comes
    when enough is new, or the limit is another."""
    cache, made = filled(tmp_path / "cache")
    bundle = tmp_path / "a.ingot"
    bundle.write_bytes(b"")
    cache.roots.add(str(bundle), [action.key for action in made[:8]])
    found = keep_limit(cache, 4000)
    assert found is not None
    assert found.is_missed
    assert kept(cache, made) == list(range(8))
    assert keep_limit(cache, 4000) is None
    Action(key_of("small"), "rule", (b"x" * 100,)).run(cache)
    assert keep_limit(cache, 4000) is None
    Action(key_of("large"), "rule", (b"y" * 600,)).run(cache)
    again = keep_limit(cache, 4000)
    assert again is not None
    assert again.is_missed
    assert keep_limit(cache, 4000) is None
    assert keep_limit(cache, 2000) is not None
    bundle.unlink()
    gone = keep_limit(cache, 1000)
    assert gone is not None
    assert not gone.is_missed
    assert cache.roots.roots() == ()


def test_a_build_that_runs_is_not_waited_for(tmp_path: Path) -> None:
    """While another process builds, nothing goes; the next build's end sees to it."""
    cache, made = filled(tmp_path)
    code = (
        "import sys\nfrom ingot_artifacts.store.cache import Cache\ncache = Cache(sys.argv[1])\n"
        "with cache.building():\n    print('in', flush=True)\n    sys.stdin.readline()\n"
    )
    with start_python(code, str(tmp_path)) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        assert keep_limit(cache, 2000) is None
        assert kept(cache, made) == list(range(10))
        other.stdin.write("\n")
        other.stdin.close()
        other.wait()
    found = keep_limit(cache, 2000)
    assert found is not None
    assert len(kept(cache, made)) < 10


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "zeros": lambda line: bytes(len(line)),
    "another form": lambda _: b"= 1 2 3\n",
    "twice": lambda line: line * 2,
    "cut": lambda line: line[:-1],
    "a count that was never finished": lambda line: b"?" + line[1:],
}


@pytest.mark.parametrize("how", ["gone", *SPOILED])
def test_a_sum_that_is_lost_is_counted_anew(tmp_path: Path, how: str) -> None:
    """Gone, torn, of zeros, of another form, or of a count that was never finished: the cache is
    counted, and the limit is kept."""
    cache, made = filled(tmp_path)
    keep_limit(cache, GB)
    line = size_path(cache).read_bytes()
    size_path(cache).unlink()
    if how in SPOILED:
        size_path(cache).write_bytes(SPOILED[how](line))
    Action(key_of("more"), "rule", (b"z" * 500,)).run(cache)
    assert read_tally(cache.folder) is None
    assert keep_limit(cache, GB) is None
    tally = read_tally(cache.folder)
    assert tally is not None
    assert tally.size_bytes == stat(cache).size_bytes
    assert keep_limit(cache, 2000) is not None
    assert len(kept(cache, made)) < 10


def test_a_link_in_the_place_of_the_sum_is_not_followed(tmp_path: Path) -> None:
    """What is behind it is neither read nor written, and a build goes on."""
    cache, _ = filled(tmp_path / "cache")
    keep_limit(cache, GB)
    target = tmp_path / "target"
    target.write_bytes(b"= 1\n")
    size_path(cache).unlink()
    size_path(cache).symlink_to(target)
    Action(key_of("more"), "rule", (b"z" * 500,)).run(cache)
    assert target.read_bytes() == b"= 1\n"
    assert keep_limit(cache, GB) is None


def test_what_is_written_during_a_count_is_in_the_sum(tmp_path: Path) -> None:
    """A build of another process that writes while somebody counts is never left out."""
    cache, _ = filled(tmp_path)

    def count() -> int:
        size_bytes = stat(cache).size_bytes
        add_size(cache.folder, 777)
        return size_bytes

    before = stat(cache).size_bytes
    assert count_anew(cache.folder, count).size_bytes == before + 777
    assert read_tally(cache.folder) == Tally(before + 777)


# Writes until it is killed.
WRITER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.harness.store_harness import actions, build
from ingot_artifacts.store.cache import Cache
cache = Cache(sys.argv[1])
with cache.building():
    for action in actions(5000, seed=int(sys.argv[2])):
        action.run(cache)
        print(".", flush=True)
"""


@pytest.mark.broad
def test_kill_9_leaves_no_sum_that_is_too_small(tmp_path: Path) -> None:
    """Two writers at once, killed at any point: the sum has all that is there, and the limit is
    kept by the next one."""
    cache = Cache(str(tmp_path))
    keep_limit(cache, GB)
    for number in range(5):
        with (
            start_python(WRITER, str(tmp_path), str(number)) as one,
            start_python(WRITER, str(tmp_path), str(number + 100)) as other,
        ):
            for writer in (one, other):
                assert writer.stdout is not None
                for _ in range(5 + number * 3):
                    writer.stdout.readline()
            for writer in (one, other):
                os.kill(writer.pid, signal.SIGKILL)
        tally = read_tally(cache.folder)
        assert tally is not None
        assert tally.size_bytes >= stat(cache).size_bytes > 0
    found = keep_limit(cache, 20_000)
    assert found is not None
    assert stat(cache).size_bytes <= 20_000
    assert verify(cache).findings == ()


def test_a_disk_that_takes_no_sum_stops_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the sum cannot be written it is gone, so that nobody believes it."""
    cache, _ = filled(tmp_path)
    keep_limit(cache, GB)

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        Action(key_of("more"), "rule", (b"z" * 500,)).run(cache)
    assert read_tally(cache.folder) is None
    assert keep_limit(cache, GB) is None
    assert read_tally(cache.folder) is not None
