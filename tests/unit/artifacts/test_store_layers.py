"""What every kind of layer of a cache must do, as the first one and below others: a line in
``KINDS`` per kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.harness.memory_layer import MemoryLayer
from tests.harness.store_harness import actions, blobs_of, build, digest_of, key_of

from ingot_artifacts.errors import StoreReadOnly
from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing, BlobStore
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.folder_blobs import FolderBlobs
from ingot_artifacts.store.folder_layer import FolderLayer
from ingot_artifacts.store.index.index import ActionIndex
from ingot_artifacts.store.layer import Layer
from ingot_artifacts.store.layers import open_blobs, open_layer, whole_address
from ingot_artifacts.store.layout import versioned
from ingot_artifacts.store.trust import Trust

CONTENT, OTHER = b"content", os.urandom(100_000)
KEY, SECOND = key_of("key"), key_of("second")
HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Kind:
    """A layer to be tried, one that may be written and has the same content, and the way to spoil a
    blob in it."""

    layer: Layer
    writable: Layer
    spoil: Callable[[str], None]
    read_only: bool = False


def _folder(path: Path) -> Kind:
    layer = FolderLayer(str(path / "layer"))
    return Kind(layer, layer, lambda digest: _overwrite(path / "layer", digest))


def _read_only(path: Path) -> Kind:
    read = FolderLayer(str(path / "layer"), read_only=True)
    return Kind(
        read,
        FolderLayer(str(path / "layer")),
        lambda digest: _overwrite(path / "layer", digest),
        True,
    )


def _overwrite(folder: Path, digest: str) -> None:
    path = Path(blob_path(str(folder), digest))
    path.chmod(0o600)
    path.write_bytes(b"X" + path.read_bytes()[1:])


def _memory(_: Path) -> Kind:
    layer = MemoryLayer()

    def spoil(digest: str) -> None:
        layer.blobs.contents[digest] = b"X" + layer.blobs.contents[digest][1:]

    return Kind(layer, layer, spoil)


KINDS: dict[str, Callable[[Path], Kind]] = {
    "a folder": _folder,
    "a folder that is only read": _read_only,
    "memory": _memory,
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each kind of layer, with two blobs and two rows."""
    (tmp_path / "layer").mkdir()
    made = KINDS[request.param](tmp_path)
    for content in (CONTENT, OTHER):
        made.writable.blobs.write(digest_of(content), memoryview(content))
    made.writable.index.put_many([(SECOND, b"second"), (KEY, b"row")])
    return made


def find(kind: Kind, digest: str, known: bytes | None = None) -> tuple[bytes | None, bool]:
    """What a layer finds, as bytes."""
    found, moved = kind.layer.blobs.find(digest, None if known is None else memoryview(known))
    return None if found is None else bytes(found), moved


def test_blobs_are_found_by_digest(kind: Kind) -> None:
    """The right bytes and their size; nothing for what is not there; whoever knows the bytes may
    have them compared."""
    for content in (CONTENT, OTHER):
        assert find(kind, digest_of(content)) == (content, False)
        assert find(kind, digest_of(content), content) == (content, False)
        assert kind.layer.blobs.size_bytes(digest_of(content)) == len(content)
        assert kind.layer.blobs.verify(digest_of(content))
    assert find(kind, "0" * 64) == (None, False)
    assert kind.layer.blobs.size_bytes("0" * 64) is None
    assert kind.layer.blobs.verify("0" * 64)


@pytest.mark.parametrize("content", [CONTENT, OTHER])
@pytest.mark.parametrize("is_known", [False, True])
def test_wrong_bytes_are_never_given(kind: Kind, content: bytes, is_known: bool) -> None:
    """They are out of the way or count as missing; a layer that is written to is healed by writing,
    any other refuses."""
    digest = digest_of(content)
    kind.spoil(digest)
    known = content if is_known else None
    assert find(kind, digest, known) == (None, not kind.read_only)
    assert find(kind, digest, known) == (None, False)
    assert kind.layer.blobs.size_bytes(digest) is None
    if kind.read_only:
        with pytest.raises(StoreReadOnly):
            kind.layer.blobs.write(digest, memoryview(content))
    else:
        kind.layer.blobs.write(digest, memoryview(content))
        assert find(kind, digest) == (content, False)


def test_a_check_of_a_blob_finds_damage(kind: Kind) -> None:
    """False once; then it is gone, or counts as that."""
    kind.spoil(digest_of(CONTENT))
    assert not kind.layer.blobs.verify(digest_of(CONTENT))
    assert find(kind, digest_of(CONTENT)) == (None, False)


def test_as_the_first_layer_of_blobs(kind: Kind) -> None:
    """What is there counts as put; new bytes are kept or refused; damage has a name; nothing else
    is a digest."""
    store = BlobStore([kind.layer.blobs])
    assert store.put(CONTENT) == digest_of(CONTENT)
    assert bytes(store.get(digest_of(OTHER))) == OTHER
    if kind.read_only:
        with pytest.raises(StoreReadOnly):
            store.put(b"new")
    else:
        assert bytes(store.get(store.put(b"new"))) == b"new"
    kind.spoil(digest_of(CONTENT))
    with pytest.raises(BlobMissing if kind.read_only else BlobDamaged) as caught:
        store.get(digest_of(CONTENT))
    assert caught.value.digest == digest_of(CONTENT)
    for name in ("", "../../../../etc/passwd", "0" * 63, "A" * 64, "1" * 64):
        assert not store.has(name)
        with pytest.raises(BlobMissing):
            store.get(name)


def test_below_a_folder_blobs_are_read_and_never_written(kind: Kind, tmp_path: Path) -> None:
    """What is below is not written again; what is spoiled below is written above; what is spoiled
    above is read from below."""
    above = tmp_path / "above"
    store = BlobStore([FolderBlobs(str(above)), kind.layer.blobs])
    assert store.put(CONTENT) == digest_of(CONTENT)
    assert bytes(store.get(digest_of(CONTENT))) == CONTENT
    assert store.size_bytes(digest_of(OTHER)) == len(OTHER)
    assert not above.exists()
    new = store.put(b"new")
    assert kind.layer.blobs.size_bytes(new) is None
    kind.spoil(digest_of(CONTENT))
    assert store.put(CONTENT) == digest_of(CONTENT)
    assert bytes(blobs_of(above).get(digest_of(CONTENT))) == CONTENT
    blobs_of(above).put(OTHER)
    _overwrite(above, digest_of(OTHER))
    assert bytes(store.get(digest_of(OTHER))) == OTHER


def test_rows_are_found_listed_and_written(kind: Kind) -> None:
    """By key, sorted by key; where nothing is written, writing is refused, forgetting and noting a
    use are not."""
    index = kind.layer.index
    assert (index.get(KEY), index.get(key_of("none"))) == (b"row", None)
    rows = list(index.rows())
    assert [(row.key, row.content) for row in rows] == sorted([(KEY, b"row"), (SECOND, b"second")])
    assert index.read_only == kind.read_only
    index.delete(key_of("none"))
    index.touch([KEY, key_of("none")])
    if kind.read_only:
        refused = (
            lambda: index.put_many([(KEY, b"")]),
            lambda: index.delete_rows([1]),
            index.settle_times,
            index.heal,
        )
        for call in refused:
            with pytest.raises(StoreReadOnly):
                call()
        index.delete(KEY)
        assert index.get(KEY) == b"row"
    else:
        index.put_many([(KEY, b"again")])
        assert index.get(KEY) == b"again"
        assert not index.heal()
        index.delete(KEY)
        index.delete_rows([row.number for row in rows if row.key == SECOND])
        assert list(index.rows()) == []
    index.close()


def test_uses_are_noted_to_the_hour(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where something is written; uses that lie ahead can be brought back."""
    index = kind.layer.index
    before = {row.key: row.used for row in index.rows()}
    monkeypatch.setattr("time.time", lambda: before[KEY] + HOUR_SECONDS / 2)
    index.touch([KEY])
    assert {row.key: row.used for row in index.rows()} == before
    later = before[KEY] + 2 * HOUR_SECONDS
    monkeypatch.setattr("time.time", lambda: later)
    index.touch([KEY])
    noted = {row.key: row.used for row in index.rows()}
    assert noted == (before if kind.read_only else {**before, KEY: later})
    monkeypatch.setattr("time.time", lambda: 1000.0)
    if not kind.read_only:
        index.settle_times()
        assert {row.used for row in index.rows()} == {1000.0}


def test_rows_count_by_their_seal(kind: Kind, tmp_path: Path) -> None:
    """First or below: an unsealed row is none, and neither is one sealed with another key; what is
    sealed is found until it is deleted."""
    above = tmp_path / "above"
    above.mkdir()
    mine, others = Trust(b"1" * 32), Trust(b"2" * 32)
    for trust, expected in ((mine, b"value"), (others, None)):
        ActionIndex([kind.writable.index], mine).put(KEY, b"value")
        for layers in ([kind.layer.index], [FolderLayer(str(above)).index, kind.layer.index]):
            index = ActionIndex(layers, trust)
            assert index.get(KEY) == expected
            assert index.get(SECOND) is None
    ActionIndex([kind.writable.index], mine).put(KEY, b"value")
    index = ActionIndex([kind.layer.index], mine)
    index.delete(KEY)
    assert index.get(KEY) is None


def test_a_build_over_a_layer_runs_nothing_that_it_has(kind: Kind, tmp_path: Path) -> None:
    """Records and blobs of a build, copied into the layer: a cache above it needs nothing more;
    spoiled ones run again, once."""
    wanted = actions(40, seed=3)
    first = Cache(str(tmp_path / "first"))
    build(first, wanted)
    for action in wanted:
        value = first.index.get(action.key)
        assert value is not None
        ActionIndex([kind.writable.index]).put(action.key, value)
        for content in (*action.contents, *([action.record()] if action.large else [])):
            kind.writable.blobs.write(digest_of(content), memoryview(content))
    assert build(Cache(str(tmp_path / "second"), [kind.layer]), wanted) == 0
    for action in wanted[:5]:
        kind.spoil(digest_of(action.contents[0]))
    third = Cache(str(tmp_path / "third"), [kind.layer])
    assert 5 <= build(third, wanted) < 15
    assert build(third, wanted) == 0


def test_another_process_opens_blobs_by_addresses(tmp_path: Path) -> None:
    """An address says where, and whether it is only read, whatever the folder is called; what is
    none is refused."""
    below = Cache(str(tmp_path / "below"))
    digest = below.blobs.put(CONTENT)
    cache = Cache(str(tmp_path / "a:b"), [open_layer(str(tmp_path / "below"))])
    store = open_blobs([layer.address for layer in cache.layers])
    assert bytes(store.get(digest)) == CONTENT
    new = store.put(b"new")
    assert (cache.blobs.has(new), below.blobs.has(new)) == (True, False)
    only_read = open_blobs([cache.layers[1].address])
    with pytest.raises(StoreReadOnly):
        only_read.put(b"other")
    assert cache.layers[1].folders == (versioned(str(tmp_path / "below")),)
    for wrong in ("", "/folder", "memory:1", "folder:/folder"):
        with pytest.raises(ValueError, match="address"):
            open_blobs([wrong])


def test_a_layer_by_its_address(tmp_path: Path) -> None:
    """A path is a folder; a kind may stand before it; what is no kind belongs to the path."""
    below = Cache(str(tmp_path / "be:low"))
    for address in (str(tmp_path / "be:low"), f"folder:{tmp_path / 'be:low'}"):
        assert open_layer(address).folders == (below.folder,)
    assert whole_address("be:low") == whole_address("folder:be:low") == os.path.abspath("be:low")
