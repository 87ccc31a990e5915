"""1,000 faults in a cache: every one is found by a check and healed by a build; a build without a
check is never wrong."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness.store_harness import Action, actions, build, digest_of

from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.layers import open_layer
from ingot_artifacts.store.scrub import verify

ROUNDS = 20
FAULTS_PER_ROUND = 50


class Injector:
    """Spoils one thing of a cache after the other, none twice in a round; remembers by which
    findings each must be told.

    A fault is a set of (kind, name) of which every one must be found.
    """

    def __init__(self, cache: Cache, wanted: list[Action], seed: int) -> None:
        self.cache = cache
        self.random = random.Random(seed)
        self.users: dict[str, list[str]] = {}
        for action in wanted:
            for content in (*action.contents, *([action.record()] if action.large else [])):
                self.users.setdefault(digest_of(content), []).append(action.key.hex())
        self.digests = sorted(self.users)
        self.keys = sorted(action.key for action in wanted)
        self.random.shuffle(self.digests)
        self.random.shuffle(self.keys)
        self.database = sqlite3.connect(
            os.path.join(cache.folder, "index", "cache.db"), isolation_level=None
        )

    def blob(self) -> tuple[str, Path]:
        """Return the next blob's digest and file, which may be changed."""
        digest = self.digests.pop()
        path = Path(blob_path(self.cache.folder, digest))
        path.chmod(0o600)
        return digest, path

    def row(self) -> tuple[bytes, bytes]:
        """Return the next key and its row's bytes."""
        key = self.keys.pop()
        ((value,),) = self.database.execute(
            "SELECT value FROM Cache WHERE key = ?", (key,)
        ).fetchall()
        return key, value

    def set_row(self, key: bytes, **columns: object) -> None:
        """Change columns of a row."""
        for name, value in columns.items():
            self.database.execute(f"UPDATE Cache SET {name} = ? WHERE key = ?", (value, key))

    def flip(self, content: bytes) -> bytes:
        """Return bytes with one bit changed."""
        changed = bytearray(content)
        changed[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        return bytes(changed)


def flip_blob(to: Injector) -> list[tuple[str, str]]:
    """One bit, and the file's times as before."""
    digest, path = to.blob()
    state = path.stat()
    path.write_bytes(to.flip(path.read_bytes()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return [("blob", digest)]


def truncate_blob(to: Injector) -> list[tuple[str, str]]:
    """Any number of bytes from the end."""
    digest, path = to.blob()
    os.truncate(path, to.random.randrange(path.stat().st_size))
    return [("blob", digest)]


def lengthen_blob(to: Injector) -> list[tuple[str, str]]:
    """A zero at the end."""
    digest, path = to.blob()
    path.write_bytes(path.read_bytes() + b"\0")
    return [("blob", digest)]


def swap_blobs(to: Injector) -> list[tuple[str, str]]:
    """Two files with each other's names."""
    (one, first), (other, second) = to.blob(), to.blob()
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    return [("blob", one), ("blob", other)]


def delete_blob(to: Injector) -> list[tuple[str, str]]:
    """Told by the records that need it."""
    digest, path = to.blob()
    path.unlink()
    return [("record", to.users[digest][0])]


def empty_blob(to: Injector) -> list[tuple[str, str]]:
    """What a power cut leaves."""
    digest, path = to.blob()
    path.write_bytes(b"")
    return [("blob", digest)]


def link_blob(to: Injector) -> list[tuple[str, str]]:
    """A link to the same bytes elsewhere: it can change any time."""
    digest, path = to.blob()
    elsewhere = Path(to.cache.path) / f"elsewhere-{digest}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    return [("blob", digest)]


def replace_blob_by_folder(to: Injector) -> list[tuple[str, str]]:
    """A folder of the blob's name."""
    digest, path = to.blob()
    path.unlink()
    path.mkdir()
    return [("blob", digest)]


def add_foreign_file(to: Injector) -> list[tuple[str, str]]:
    """A file that no cache writes, in a shard or beside the shards."""
    name = f"foreign-{to.random.getrandbits(64):x}"
    shelf = Path(to.cache.folder) / "cas" / "sha256"
    place = to.random.choice(
        [shelf, shelf.parent, Path(blob_path(to.cache.folder, to.digests[0])).parent]
    )
    (place / name).write_bytes(to.random.randbytes(20))
    return [("foreign", os.path.relpath(place / name, to.cache.folder))]


def add_foreign_blob(to: Injector) -> list[tuple[str, str]]:
    """A file with a blob's name and any bytes."""
    digest = to.random.randbytes(32).hex()
    path = Path(blob_path(to.cache.folder, digest))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"foreign")
    return [("blob", digest)]


def flip_row(to: Injector) -> list[tuple[str, str]]:
    """One bit of a value or of its seal."""
    key, value = to.row()
    to.set_row(key, value=to.flip(value))
    return [("record", key.hex())]


def truncate_row(to: Injector) -> list[tuple[str, str]]:
    """Any number of bytes from the end."""
    key, value = to.row()
    to.set_row(key, value=value[: to.random.randrange(len(value))])
    return [("record", key.hex())]


def swap_rows(to: Injector) -> list[tuple[str, str]]:
    """Two well-sealed values with each other's keys."""
    (one, first), (other, second) = to.row(), to.row()
    to.set_row(one, value=second)
    to.set_row(other, value=first)
    return [("record", one.hex()), ("record", other.hex())]


def empty_row(to: Injector) -> list[tuple[str, str]]:
    """A value of no bytes."""
    key, _ = to.row()
    to.set_row(key, value=b"")
    return [("record", key.hex())]


def poison_row(to: Injector) -> list[tuple[str, str]]:
    """A pickle, a file outside, a text."""
    key, _ = to.row()
    columns = (
        {"mode": 4, "value": b"\x80\x04N."},
        {"mode": 2, "filename": "../../../x"},
        {"value": "text"},
    )
    to.set_row(key, **to.random.choice(columns))
    return [("record", key.hex())]


def spoil_root(to: Injector) -> list[tuple[str, str]]:
    """One bit of a root's file."""
    name = f"root {to.random.getrandbits(64):x}"
    to.cache.roots.add(name, to.keys[:3])
    (path,) = (
        path
        for path in (Path(to.cache.folder) / "roots").iterdir()
        if name.encode() in path.read_bytes()
    )
    path.write_bytes(to.flip(path.read_bytes()))
    return [("root", os.path.relpath(path, to.cache.folder))]


FAULTS: tuple[Callable[[Injector], list[tuple[str, str]]], ...] = (
    flip_blob, truncate_blob, lengthen_blob, swap_blobs, delete_blob, empty_blob, link_blob, replace_blob_by_folder,
    add_foreign_file, add_foreign_blob, flip_row, truncate_row, swap_rows, empty_row, poison_row, spoil_root,
)  # fmt: skip


def inject(
    cache: Cache, wanted: list[Action], seed: int, kinds: tuple[Callable[..., object], ...]
) -> list[tuple[str, str]]:
    """Put faults of each kind in turn; return all findings that are due."""
    injector = Injector(cache, wanted, seed)
    due: list[tuple[str, str]] = []
    with closing(injector.database):
        for number in range(FAULTS_PER_ROUND):
            found = kinds[(number + seed) % len(kinds)](injector)
            assert isinstance(found, list)
            due += found
    return due


@pytest.fixture(scope="module")
def wanted() -> list[Action]:
    """More actions than a round can spoil."""
    return actions(160, seed=11)


@pytest.mark.broad
def test_a_check_finds_every_fault_and_the_next_build_heals(
    tmp_path: Path, wanted: list[Action]
) -> None:
    """1,000 faults, 20 rounds: 100 % found by name; then a build is right, a second runs nothing, a
    check finds nothing."""
    cache = Cache(str(tmp_path))
    assert build(cache, wanted) == len(wanted)
    faults = missed = 0
    for seed in range(ROUNDS):
        due = inject(cache, wanted, seed, FAULTS)
        faults += FAULTS_PER_ROUND
        found = {(finding.kind, finding.name) for finding in verify(cache).findings}
        missed += len([item for item in due if item not in found])
        assert verify(cache).findings == ()
        assert 0 < build(Cache(str(tmp_path)), wanted) < len(wanted)
        assert build(cache, wanted) == 0
        assert verify(cache).findings == ()
    assert (faults, missed) == (1000, 0)


@pytest.mark.broad
def test_a_build_without_a_check_is_never_wrong(tmp_path: Path, wanted: list[Action]) -> None:
    """The same 1,000 faults, met by builds alone (each compares every byte it gets): right, and
    healed by the way."""
    cache = Cache(str(tmp_path))
    build(cache, wanted)
    for seed in range(ROUNDS):
        inject(cache, wanted, seed, FAULTS)
        building = Cache(str(tmp_path)) if seed % 2 else cache
        assert 0 < build(building, wanted) < len(wanted)
        assert build(building, wanted) == 0
    verify(cache)
    assert build(cache, wanted) == 0


def test_a_read_only_cache_with_faults_is_never_wrong(tmp_path: Path, wanted: list[Action]) -> None:
    """Faults in a lower layer: the upper one gets what is spoiled below, the lower one is left as
    it is."""
    lower = Cache(str(tmp_path / "lower"))
    build(lower, wanted)
    due = inject(lower, wanted, 1, FAULTS)
    reader = Cache(str(tmp_path / "lower"), read_only=True)
    before = verify(reader).findings
    assert {(finding.kind, finding.name) for finding in before} >= set(due)
    upper = Cache(str(tmp_path / "upper"), [open_layer(str(tmp_path / "lower"))])
    assert 0 < build(upper, wanted) < len(wanted)
    assert build(upper, wanted) == 0
    assert build(Cache(str(tmp_path / "upper"), [open_layer(str(tmp_path / "lower"))]), wanted) == 0
    assert verify(reader).findings == before
