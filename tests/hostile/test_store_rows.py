"""A poisoned or damaged index: no code is run, no file outside is read, moved or removed, no crash;
rows like that are misses."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import diskcache
import pytest
from tests.harness.store_harness import Action, actions, build, digest_of, index_of, key_of, sql

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.index.index_disk import IndexDisk, IndexRowError
from ingot_artifacts.store.records import RecordError, read_facts
from ingot_artifacts.store.scrub import verify
from ingot_runtime.format.msgpack_canonical import pack

KEY, OTHER = key_of("key"), key_of("other")
RAW, BINARY, TEXT, PICKLE = 1, 2, 3, 4


class _Payload:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache with two rows, and a secret file beside it."""
    (tmp_path / "secret").write_bytes(b"secret")
    made = Cache(str(tmp_path / "cache"))
    made.index.put_many([(KEY, b"value"), (OTHER, b"other")])
    return made


POISON: dict[str, Callable[[Path], dict[str, Any]]] = {
    "pickle": lambda folder: {"mode": PICKLE, "value": pickle.dumps(_Payload(folder / "ran"))},
    "pickle in a file": lambda folder: {
        "mode": PICKLE,
        "value": None,
        "filename": "../../../ran.pickle",
    },
    "a file outside": lambda folder: {"mode": BINARY, "value": None, "filename": "../../../secret"},
    "an absolute path": lambda folder: {
        "mode": BINARY,
        "value": None,
        "filename": str(folder / "secret"),
    },
    "text of a file": lambda folder: {"mode": TEXT, "value": None, "filename": "../../../secret"},
    "bytes and a file": lambda folder: {"mode": RAW, "filename": "../../../secret"},
    "text": lambda folder: {"value": "text"},
    "a number": lambda folder: {"value": 7},
    "nothing": lambda folder: {"value": None},
    "too long": lambda folder: {"value": bytes(40_000)},
    "empty": lambda folder: {"value": b""},
    "unsealed": lambda folder: {"value": b"unsealed value that is long enough to have a seal"},
    "an unknown mode": lambda folder: {"mode": 9},
    "a mode of text": lambda folder: {"mode": "RAW"},
}


def poison(cache: Cache, columns: dict[str, Any]) -> None:
    """Change columns of the row of KEY."""
    sql(
        cache,
        *(
            (f"UPDATE Cache SET {name} = ? WHERE key = ?", (value, KEY))
            for name, value in columns.items()
        ),
    )


def assert_untouched(folder: Path) -> None:
    """No payload ran, the secret is where it was."""
    assert not (folder / "ran").exists()
    assert (folder / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize("kind", POISON)
def test_a_poisoned_row_is_a_miss_and_is_deleted(cache: Cache, tmp_path: Path, kind: str) -> None:
    """Whatever a row says, reading it gives nothing, removes it, and leaves the rest alone."""
    (tmp_path / "ran.pickle").write_bytes(pickle.dumps(_Payload(tmp_path / "ran")))
    poison(cache, POISON[kind](tmp_path))
    assert cache.index.get(KEY) is None
    assert [key for key, _ in cache.index.items()] == [OTHER]
    with closing(sqlite3.connect(tmp_path / "cache/v1/index/cache.db")) as database:
        assert database.execute("SELECT count(*) FROM Cache").fetchone() == (1,)
    cache.index.put(KEY, b"again")
    assert cache.index.get(KEY) == b"again"
    assert_untouched(tmp_path)


@pytest.mark.parametrize("kind", POISON)
def test_a_poisoned_row_can_be_overwritten_deleted_and_read_from_above(
    cache: Cache, tmp_path: Path, kind: str
) -> None:
    """None of the ways around reading does what the row says either."""
    poison(cache, POISON[kind](tmp_path))
    assert index_of(cache.folder, read_only=True).get(KEY) is None
    assert index_of(cache.folder, cache.folder).get(KEY) is None
    poison(cache, POISON[kind](tmp_path))
    cache.index.put(KEY, b"again")
    assert cache.index.get(KEY) == b"again"
    poison(cache, POISON[kind](tmp_path))
    cache.index.delete(KEY)
    cache.index.put(KEY, b"again")
    poison(cache, POISON[kind](tmp_path))
    assert [
        (finding.kind, finding.name)
        for finding in verify(cache).findings
        if finding.name == KEY.hex()
    ]
    assert_untouched(tmp_path)


@pytest.mark.parametrize("key", [pickle.dumps(("key",)), b"short", "text", 7, None])
def test_a_poisoned_key_is_never_read(cache: Cache, tmp_path: Path, key: object) -> None:
    """Rows with foreign keys are listed nowhere, and a check deletes them."""
    columns = "key, raw, store_time, access_time, mode, value"
    sql(cache, (f"INSERT INTO Cache ({columns}) VALUES (?, 0, 0, 0, 1, ?)", (key, b"value")))
    assert [found for found, _ in cache.index.items()] == sorted((KEY, OTHER))
    poisoned = [finding for finding in verify(cache).findings if finding.name == ""]
    assert len(poisoned) == 1
    assert all(entry.key is not None for entry in cache.index.scan())


def test_values_that_changed_places_are_misses(cache: Cache) -> None:
    """A value is sealed with its key: that of another key is refused."""
    sql(
        cache,
        (
            "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = ?) WHERE key = ?",
            (OTHER, KEY),
        ),
    )
    assert cache.index.get(KEY) is None
    assert cache.index.get(OTHER) == b"other"


def test_a_flipped_bit_of_a_value_is_found(cache: Cache) -> None:
    """Bits of a stored value's seal and content, one at a time."""
    with closing(sqlite3.connect(os.path.join(cache.folder, "index", "cache.db"))) as database:
        ((value,),) = database.execute("SELECT value FROM Cache WHERE key = ?", (KEY,)).fetchall()
    for bit in range(0, 8 * len(value), 5):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << bit % 8
        poison(cache, {"value": bytes(flipped)})
        assert cache.index.get(KEY) is None
        cache.index.put(KEY, b"value")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sqlite_temp_store_directory", "/tmp"),
        ("sqlite_cache_size", "1; DROP TABLE Cache"),
        ("sqlite_journal_mode", "off"),
        ("sqlite_foreign = 1; --", 1),
        ("disk_directory", "/"),
        ("disk_unknown", 1),
        ("eviction_policy", "no such policy"),
        ("size_limit", 10),
        ("cull_limit", "many"),
        ("get", "not a function"),
        ("_disk", None),
        ("count", "many"),
        ("size", b"\xff"),
        (b"\xff\xfe", b"\xff"),
        (None, 1),
    ],
)
def test_poisoned_settings_are_put_right(
    cache: Cache, tmp_path: Path, name: object, value: object
) -> None:
    """Settings become PRAGMAs and attributes in diskcache: what is not ours is gone before it
    looks; no row is lost."""
    cache.index.close()
    with closing(
        sqlite3.connect(os.path.join(cache.folder, "index", "cache.db"), isolation_level=None)
    ) as database:
        # As an attacker would make it: the column allows what he wants.
        database.execute("PRAGMA writable_schema = 1")
        database.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'Settings'"
        )
        database.execute("PRAGMA writable_schema = 0")
    sql(
        cache,
        ("DELETE FROM Settings WHERE key = ?", (name,)),
        ("INSERT INTO Settings VALUES (?, ?)", (name, value)),
    )
    again = index_of(cache.folder)
    assert again.get(KEY) == b"value"
    again.put_many([(key_of(number), bytes(100)) for number in range(100)])
    assert len(list(again.items())) == 102
    assert not os.path.exists(os.path.join(cache.folder, "quarantine")) or not os.listdir(
        os.path.join(cache.folder, "quarantine")
    )


def _foreign_diskcache(path: Path) -> None:
    with diskcache.Cache(str(path.parent)) as other:
        other["key"] = {"not": "bytes"}


def _foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE Settings (other)")


def _with_trigger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TRIGGER mine AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END")
        database.commit()


def _with_view(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE Cache")
        database.execute("CREATE VIEW Cache AS SELECT 1 AS key")
        database.commit()


def _other_columns(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE Cache RENAME COLUMN value TO content")
        database.commit()


def _without_mark(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA application_id = 0")


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_link(path: Path) -> None:
    path.symlink_to(path.parents[3] / "secret")


# what stands there instead of the database -> whether the old one is deleted before
FOREIGN: dict[str, tuple[Callable[[Path], object], bool]] = {
    "noise": (lambda path: path.write_bytes(random.Random(1).randbytes(10_000)), True),
    "text": (lambda path: path.write_text("not a database\n" * 100), True),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:5000]), False),
    "cut to its head": (lambda path: path.write_bytes(path.read_bytes()[:100]), False),
    "another diskcache": (_foreign_diskcache, True),
    "another database": (_foreign_database, True),
    "a trigger": (_with_trigger, False),
    "a view": (_with_view, False),
    "other columns": (_other_columns, False),
    "no mark": (_without_mark, False),
    "a folder": (_a_folder, True),
    "a link": (_a_link, True),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_database_goes_to_quarantine(cache: Cache, tmp_path: Path, kind: str) -> None:
    """It is kept for who wants to look, an empty one stands in its place; as a lower layer it is
    empty."""
    cache.index.close()
    path = tmp_path / "cache" / "v1" / "index" / "cache.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    spoil, instead = FOREIGN[kind]
    if instead:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
    spoil(path)
    assert index_of(cache.folder, read_only=True).get(key_of("none")) is None
    assert list(index_of(cache.folder, read_only=True).items()) in (
        [],
        sorted([(KEY, b"value"), (OTHER, b"other")]),
    )
    again = index_of(cache.folder)
    again.put(KEY, b"again")
    assert list(again.items()) == [(KEY, b"again")]
    assert [found.name.split(".")[0] for found in (tmp_path / "cache/v1/quarantine").iterdir()] == [
        "index"
    ]
    assert_untouched(tmp_path)


@pytest.mark.parametrize("content", [b"", None])
def test_an_empty_or_missing_database_is_a_new_one(
    cache: Cache, tmp_path: Path, content: bytes | None
) -> None:
    """An empty file is what a killed process leaves of a new database."""
    cache.index.close()
    path = tmp_path / "cache" / "v1" / "index" / "cache.db"
    shutil.rmtree(path.parent)
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    again = index_of(cache.folder)
    assert list(again.items()) == []
    again.put(KEY, b"again")
    assert again.get(KEY) == b"again"


def _damage(content: bytes, generator: random.Random) -> bytes:
    """Overwrite a few bytes, or a page, or cut the end off."""
    spoiled = bytearray(content)
    kind = generator.randrange(3)
    if kind == 0:
        for _ in range(8):
            spoiled[generator.randrange(len(spoiled))] ^= 1 << generator.randrange(8)
    elif kind == 1:
        page = generator.randrange(len(spoiled) // 4096) * 4096
        spoiled[page : page + 4096] = generator.randbytes(4096)
    else:
        del spoiled[generator.randrange(len(spoiled)) :]
    return bytes(spoiled)


@pytest.mark.broad
def test_a_damaged_database_never_gives_a_wrong_value(tmp_path: Path) -> None:
    """60 random damages: each value read is right or missing, writing works, and a check leaves a
    sound index."""
    generator = random.Random(5)
    pairs = {key_of(number): str(number).encode() * 20 for number in range(200)}
    first = index_of(tmp_path / "good")
    first.put_many(list(pairs.items()))
    first.close()
    good = (tmp_path / "good/index/cache.db").read_bytes()
    for number in range(60):
        folder = tmp_path / str(number)
        (folder / "v1" / "index").mkdir(parents=True)
        (folder / "v1" / "index" / "cache.db").write_bytes(_damage(good, generator))
        cache = Cache(str(folder))
        assert all(cache.index.get(key) in (None, value) for key, value in pairs.items())
        assert all(pairs[key] == value for key, value in cache.index.items())
        cache.index.put_many(list(pairs.items()))
        verify(cache)
        cache.index.put_many(list(pairs.items()))
        assert dict(cache.index.items()) == pairs, number
        cache.close()


def test_a_database_that_is_damaged_while_it_is_open(tmp_path: Path) -> None:
    """Noise over the file under a running build: results stay right, and the next check finds a
    sound index."""
    cache = Cache(str(tmp_path))
    wanted = actions(50)
    build(cache, wanted)
    sql(cache, ("PRAGMA wal_checkpoint(TRUNCATE)", ()))
    path = tmp_path / "v1" / "index" / "cache.db"
    size_bytes = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(random.Random(2).randbytes(size_bytes - 4096))
    other = Cache(str(tmp_path))
    build(other, wanted)
    build(cache, wanted)
    verify(cache)
    build(cache, wanted)
    assert build(Cache(str(tmp_path)), wanted) == 0


RECORDS: dict[str, bytes] = {
    "not msgpack": b"\xc1",
    "cut short": b"\x82\xa4refs",
    "a list": pack([1]),
    "no refs": pack({"rule": "r"}),
    "refs is a text": pack({"refs": "0" * 64}),
    "a ref is a path": pack({"refs": ["../../../../secret"]}),
    "a ref is a number": pack({"refs": [7]}),
    "upper case": pack({"refs": ["A" * 64]}),
    "ingredients is a list": pack({"refs": [], "ingredients": ["a"]}),
    "the blob is a path": pack({"blob": "../../../../secret"}),
    "deep": b"\x91" * 30_000,
    "long": b"\xdd\xff\xff\xff\xff",
    "keys of other types": b"\x81\x01\x02",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_poisoned_record_is_no_record(cache: Cache, tmp_path: Path, kind: str) -> None:
    """A well-sealed value with any content: refused by the parser, deleted by a check."""
    with pytest.raises(RecordError):
        read_facts(RECORDS[kind], cache.blobs)
    cache.index.put(KEY, RECORDS[kind])
    assert KEY.hex() in [finding.name for finding in verify(cache).findings]
    assert cache.index.get(KEY) is None
    assert_untouched(tmp_path)


def test_a_record_in_a_blob_is_checked_like_any_other(cache: Cache) -> None:
    """The blob is no record, or names one again, or is missing: the record goes."""
    for content in (b"noise", pack({"blob": digest_of(b"noise")})):
        cache.index.put(KEY, pack({"blob": cache.blobs.put(content)}))
        assert KEY.hex() in [finding.name for finding in verify(cache).findings]
    cache.index.put(KEY, pack({"blob": "0" * 64}))
    assert KEY.hex() in [finding.name for finding in verify(cache).findings]
    good = Action(KEY, "rule", (b"result",), large=True)
    good.run(cache)
    assert verify(cache).findings == ()


def test_the_disk_of_the_index_takes_bytes_alone(tmp_path: Path) -> None:
    """Also when it is asked directly: no other key, no other value, no file name."""
    disk: Any = IndexDisk(str(tmp_path))
    for refused in (
        lambda: disk.put("text"),
        lambda: disk.put(b"short"),
        lambda: disk.get(KEY, False),
        lambda: disk.get("text", True),
        lambda: disk.store("text", False),
        lambda: disk.store(bytes(40_000), False),
        disk.filename,
        lambda: disk.fetch(PICKLE, None, b"", False),
    ):
        with pytest.raises(IndexRowError):
            refused()
    assert disk.get(KEY, True) == KEY
    assert list(tmp_path.iterdir()) == []
