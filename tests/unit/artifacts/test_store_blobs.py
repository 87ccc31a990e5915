"""Blobs: whole or not at all, verified when read, healed when damaged, shared with read-only layers
below."""

from __future__ import annotations

import copy
import os
import random
import stat
from pathlib import Path

import pytest
from tests.harness.store_harness import blobs_of, digest_of

from ingot_artifacts.errors import OutputError, StoreReadOnly, read_only_error
from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing, blob_damaged, blob_missing

LARGE = random.Random(0).randbytes(200_000)


def overwrite(path: str, content: bytes) -> None:
    """Change a read-only file in place."""
    os.chmod(path, 0o600)
    Path(path).write_bytes(content)


@pytest.mark.parametrize("size_bytes", [0, 1, 65535, 65536, 200_000])
def test_what_is_put_can_be_got(tmp_path: Path, size_bytes: int) -> None:
    """Any size comes back, from a read-only file named by its digest, as a read-only view."""
    store = blobs_of(tmp_path)
    content = LARGE[:size_bytes]
    digest = store.put(content)
    assert digest == digest_of(content)
    assert store.has(digest)
    view = store.get(digest)
    assert view.readonly
    assert view == content
    path = tmp_path / "cas" / "sha256" / digest[:2] / digest[2:]
    assert stat.S_IMODE(path.stat().st_mode) & 0o333 == 0
    assert list((tmp_path / "tmp").iterdir()) == []


def test_views_of_any_shape_are_their_bytes(tmp_path: Path) -> None:
    """A contiguous view of other elements is stored as its bytes."""
    words = memoryview(bytes(range(16))).cast("I", (2, 2))
    store = blobs_of(tmp_path)
    assert bytes(store.get(store.put(words))) == bytes(range(16))
    assert bytes(store.get(store.put(memoryview(b"").cast("B")))) == b""


def test_a_blob_is_written_once(tmp_path: Path) -> None:
    """Putting the same bytes again leaves the file alone."""
    digest = blobs_of(tmp_path).put(b"same")
    before = os.stat(blob_path(str(tmp_path), digest))
    assert blobs_of(tmp_path).put(b"same") == digest
    after = os.stat(blob_path(str(tmp_path), digest))
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_mapped_blob_holds_no_descriptor_and_outlives_its_file(tmp_path: Path) -> None:
    """Thousands of large blobs may be in use; deleting one takes nothing from who reads it."""
    store = blobs_of(tmp_path)
    digest = store.put(LARGE)
    before = len(os.listdir("/proc/self/fd"))
    views = [store.get(digest) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) == before
    os.unlink(blob_path(str(tmp_path), digest))
    del store
    assert all(view == LARGE for view in views)
    with pytest.raises(TypeError):
        views[0][0] = 0


@pytest.mark.parametrize("content", [b"small content", LARGE])
def test_damage_is_found_once_and_healed_by_put(tmp_path: Path, content: bytes) -> None:
    """Other bytes in the file: an error, the file in quarantine; then it is missing, until it is
    put again."""
    store = blobs_of(tmp_path)
    digest = store.put(content)
    assert store.get(digest) == content
    overwrite(blob_path(str(tmp_path), digest), b"X" + content[1:])
    with pytest.raises(BlobDamaged) as caught:
        store.get(digest)
    assert caught.value.digest == digest
    assert [path.name.split(".")[0] for path in (tmp_path / "quarantine").iterdir()] == [digest]
    with pytest.raises(BlobMissing):
        store.get(digest)
    assert not store.has(digest)
    assert store.put(content) == digest
    assert store.get(digest) == content


def test_verified_once_means_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blob is hashed at its first reading by a store, not at the second."""
    store = blobs_of(tmp_path)
    digest = store.put(LARGE)
    assert store.get(digest) == LARGE
    hashed: list[object] = []
    monkeypatch.setattr("ingot_artifacts.store.folder_blobs.hashlib.sha256", hashed.append)
    assert store.get(digest) == LARGE
    assert hashed == []


def test_a_wrong_size_is_replaced_when_put(tmp_path: Path) -> None:
    """A truncated file, a folder, a link or a file in place of the shard does not keep a blob from
    being written."""
    store = blobs_of(tmp_path)
    path = Path(blob_path(str(tmp_path), store.put(b"content")))

    def truncated() -> None:
        path.write_bytes(b"con")

    def folder() -> None:
        (path / "inner").mkdir(parents=True)

    def link() -> None:
        path.symlink_to("/etc/passwd")

    def pipe() -> None:
        os.mkfifo(path)

    def shard_is_a_file() -> None:
        path.parent.rmdir()
        path.parent.write_bytes(b"")

    for spoil in (truncated, folder, link, pipe, shard_is_a_file):
        path.unlink()
        spoil()
        with pytest.raises((BlobMissing, BlobDamaged)):
            blobs_of(tmp_path).get(digest_of(b"content"))
        if (
            not path.exists() and path.parent.is_dir()
        ):  # it was set aside by reading: once more, for writing
            spoil()
        assert store.put(b"content") == digest_of(b"content"), spoil
        assert bytes(store.get(digest_of(b"content"))) == b"content", spoil
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize(
    "name",
    ["", "../../../../etc/passwd", "ab/../../../../../etc/passwd", "A" * 64, "0" * 63, "0" * 65],
)
def test_what_is_no_digest_is_missing(tmp_path: Path, name: str) -> None:
    """A poisoned record cannot make the store read or move a file elsewhere."""
    store = blobs_of(tmp_path)
    store.put(b"")
    assert not store.has(name)
    with pytest.raises(BlobMissing):
        store.get(name)


def test_a_lower_layer_is_read_and_never_written(tmp_path: Path) -> None:
    """What a lower layer has is not written again; the upper layer is asked first."""
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    digest = blobs_of(lower).put(b"below")
    store = blobs_of(upper, tmp_path / "none", lower)
    assert store.has(digest)
    assert bytes(store.get(digest)) == b"below"
    assert store.put(b"below") == digest
    assert not upper.exists()
    assert store.put(b"above")
    assert not blobs_of(lower).has(digest_of(b"above"))


def test_damage_in_a_lower_layer_is_missing_and_heals_above(tmp_path: Path) -> None:
    """The lower file stays as it is, `put` writes the bytes into the upper layer."""
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    digest = blobs_of(lower).put(b"below")
    path = blob_path(str(lower), digest)
    overwrite(path, b"belog")
    store = blobs_of(upper, lower)
    with pytest.raises(BlobMissing):
        store.get(digest)
    assert not store.has(digest)
    assert store.put(b"below") == digest
    assert bytes(store.get(digest)) == b"below"
    assert Path(path).read_bytes() == b"belog"
    assert os.path.exists(blob_path(str(upper), digest))


def test_damage_above_is_read_from_below(tmp_path: Path) -> None:
    """A good copy in a lower layer serves; the damaged one is out of the way."""
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    digest = blobs_of(lower).put(b"content")
    blobs_of(upper).put(b"content")
    overwrite(blob_path(str(upper), digest), b"contenT")
    assert bytes(blobs_of(upper, lower).get(digest)) == b"content"
    assert not os.path.exists(blob_path(str(upper), digest))


def test_a_read_only_store_serves_and_refuses(tmp_path: Path) -> None:
    """It writes nothing, moves nothing; what is there already counts as put."""
    digest = blobs_of(tmp_path).put(b"content")
    store = blobs_of(tmp_path, read_only=True)
    assert store.put(b"content") == digest
    assert bytes(store.get(digest)) == b"content"
    with pytest.raises(StoreReadOnly) as caught:
        store.put(b"other")
    assert caught.value.exit_code == 1
    overwrite(blob_path(str(tmp_path), digest), b"contenT")
    with pytest.raises(BlobMissing):
        store.get(digest)
    with pytest.raises(StoreReadOnly):
        store.put(b"content")
    assert Path(blob_path(str(tmp_path), digest)).exists()


def test_verify_reads_in_any_case(tmp_path: Path) -> None:
    """Bytes that changed without a trace in the file's times are found by `verify`, and
    discarded."""
    store = blobs_of(tmp_path)
    digest = store.put(b"content")
    assert store.verify(digest)
    overwrite(blob_path(str(tmp_path), digest), b"contenT")
    assert not store.verify(digest)
    assert not store.has(digest)
    assert store.verify(digest)


def test_errors_cross_process_borders() -> None:
    """Errors of the store survive being copied by parts, as between processes, with digest and four
    parts."""
    for error in (blob_missing("0" * 64), blob_damaged("1" * 64), read_only_error("/cache")):
        again = copy.copy(error)
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert all((error.what, error.where, error.why, error.do))
        assert getattr(again, "digest", "") == getattr(error, "digest", "")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Writing into what is a file ends in four parts."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError) as caught:
        blobs_of(tmp_path / "file").put(b"content")
    assert str(tmp_path / "file") in str(caught.value)
    assert caught.value.do == "make the folder first"
