"""Files that are no model, or half a one: each is refused in four parts, never by another
exception."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.harness.frontend_harness import MemoryStore
from tests.hostile.model_builder import FLOAT, graph_of, load, model, relu_chain, value

import ingot
import ingot_runtime
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.model.external_data import read_external_file, safe_external_path
from ingot_compiler.ir.errors import ModelError
from ingot_runtime.ingot_error import IngotError


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 64,
        b'{"json": 1}',
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 40,
        b"PK\x03\x04" + bytes(range(60)),
        b"\xff" * 99,
    ],
    ids=["empty", "zeros", "json", "png", "zip", "ones"],
)
def test_other_files_are_not_onnx(data: bytes) -> None:
    """A file of another kind is called by its blame: not an ONNX model."""
    with pytest.raises(ModelError) as caught:
        load(data)
    assert caught.value.what == "the file is not an ONNX model"
    assert caught.value.why
    assert caught.value.do


def test_truncated_model_is_refused_at_every_length() -> None:
    """Whatever is cut off: a ModelError, or (only with nothing but the opset missing) another
    refusal of ours."""
    data = relu_chain().SerializeToString()
    for length in range(0, len(data), 7):
        with pytest.raises(IngotError):
            load(data[:length])


def test_truncated_model_says_so() -> None:
    """A file that breaks off inside its graph is called truncated."""
    data = relu_chain().SerializeToString()
    with pytest.raises(ModelError, match="truncated"):
        load(data[: len(data) // 2])


def test_flipped_bytes_never_escape_the_tree() -> None:
    """Any single byte changed: import and type inference give a graph or one of our errors."""
    data = bytearray(relu_chain().SerializeToString())
    rng = np.random.RandomState(7)
    header = 400  # beyond it lie weights, which may have any value
    for position in rng.randint(0, min(len(data), header), 300):
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.randint(8))
        store = MemoryStore()
        try:
            load(bytes(changed), store=store)
        except IngotError:
            continue


def _with_external(
    location: str,
    offset: int = 0,
    length: int | None = None,
    checksum: str | None = None,
    count: int = 1,
) -> bytes:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset)} | (
        {} if length is None else {"length": str(length)}
    )
    entries |= {} if checksum is None else {"checksum": checksum}
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    built = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])]
    )
    built.graph.initializer.extend([tensor] * count)
    for number, item in enumerate(built.graph.initializer[1:]):
        item.name = f"other{number}"
    return bytes(built.SerializeToString())


def _import_beside(folder: Path, data: bytes) -> MemoryStore:
    store = MemoryStore()

    def read(location: str, offset: int, size: int | None) -> memoryview:
        return read_external_file(folder, location, offset, size)

    import_model(data, read, store.write, [], [])
    return store


def test_external_data_is_read(tmp_path: Path) -> None:
    """A file beside the model gives the tensor's bytes, at its offset."""
    (tmp_path / "weights.bin").write_bytes(b"head" + np.arange(4, dtype="<f4").tobytes())
    store = _import_beside(tmp_path, _with_external("weights.bin", 4, 16))
    assert list(store.constants.values()) == [np.arange(4, dtype="<f4").tobytes()]


@pytest.mark.parametrize(
    "location", ["../secret", "a/../../secret", "/etc/hostname", "", "a\\b", "c:x", "a\0b", "."]
)
def test_locations_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    """No spelling leads out of the model's folder."""
    (tmp_path.parent / "secret").write_bytes(b"x" * 16)
    with pytest.raises(ModelError, match="external data"):
        safe_external_path(tmp_path, location)


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    """Neither a file nor a folder on the way may be a link to another place."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 16)
    folder = tmp_path / "model"
    (folder / "real").mkdir(parents=True)
    os.symlink(secret, folder / "weights.bin")
    os.symlink(tmp_path, folder / "linked")
    for location in ("weights.bin", "linked/secret"):
        with pytest.raises(ModelError, match="outside") as caught:
            safe_external_path(folder, location)
        assert "symbolic link" in caught.value.why


def _cached(folder: Path, name: str, content: bytes) -> Path:
    """A file of Hugging Face's cache: a blob called by its digest, a link to it in a snapshot."""
    blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    link = folder / "snapshots/0123abcd" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(blob, link.parent))
    return link


def test_a_model_in_the_cache_of_hugging_face(tmp_path: Path) -> None:
    """A snapshot is made of links to the blobs of its download: model and data are read through
    them, in a folder of the snapshot, too, and where the cache is reached by a link."""
    data = np.arange(4, dtype=np.float32)
    for place in ("", "onnx/"):
        _cached(tmp_path / "real/models--a--b", f"{place}weights.bin", data.tobytes())
        path = _cached(
            tmp_path / "real/models--a--b", f"{place}model.onnx", _with_external("weights.bin")
        )
        (tmp_path / "cache").unlink(missing_ok=True)
        (tmp_path / "cache").symlink_to(tmp_path / "real")
        for given in (path, tmp_path / "cache" / path.relative_to(tmp_path / "real")):
            bundle = ingot.compile(given)
            bundle.save(tmp_path / "m.ingot")
            found = ingot_runtime.load(tmp_path / "m.ingot").run({"x": np.ones(4, np.float32)})
            np.testing.assert_array_equal(found["y"], 1 + data)


def test_a_link_to_a_file_of_the_same_folder(tmp_path: Path) -> None:
    """It leads nowhere that the model may not read."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "data.bin").write_bytes(b"x" * 16)
    (tmp_path / "deep/weights.bin").symlink_to("../data.bin")
    assert safe_external_path(tmp_path, "deep/weights.bin") == tmp_path / "data.bin"


@pytest.mark.parametrize(
    "target",
    [
        "../../secret", "../../blobs/secret", "../../blobs/../secret",
        "../../../other/blobs/" + "0" * 64,
        "../../blobs/" + "1" * 64, "../../blobs/" + "2" * 64, "folder/" + "0" * 64, "../abcd/file",
        "{root}/model/blobs/" + "0" * 64,
    ],
)  # fmt: skip
def test_links_that_lead_elsewhere(tmp_path: Path, target: str) -> None:
    """A link of a snapshot leads to a blob of its own download alone: not to other files of it, to
    other downloads, to other links, through a folder that is a link, by an absolute path."""
    for place in (
        "model/secret",
        "model/blobs/secret",
        "other/blobs/" + "0" * 64,
        "model/snapshots/abcd/file",
        "model/blobs/" + "0" * 64,
    ):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 16)
    (tmp_path / "model/blobs" / ("1" * 64)).symlink_to("secret")
    (tmp_path / "model/blobs" / ("2" * 64)).hardlink_to(tmp_path / "model/secret")
    folder = tmp_path / "model/snapshots/0123"
    folder.mkdir()
    (folder / "folder").symlink_to("../../blobs")
    (folder / "weights.bin").symlink_to(target.format(root=tmp_path))
    with pytest.raises(ModelError, match="outside"):
        safe_external_path(folder, "weights.bin")


def test_hard_links_are_refused(tmp_path: Path) -> None:
    """A file that has another name somewhere, like a symbolic link; a copy of it is the model's
    own. Folders have many names."""
    (tmp_path / "model/deep/deeper").mkdir(parents=True)
    for location in ("weights.bin", "deep/weights.bin"):
        path = tmp_path / "model" / location
        (tmp_path / "secret").write_bytes(b"x" * 16)
        path.hardlink_to(tmp_path / "secret")
        with pytest.raises(ModelError, match="outside") as caught:
            _import_beside(tmp_path / "model", _with_external(location))
        assert "'weights.bin' has 2 names (hard links)" in caught.value.why
        assert caught.value.do.startswith("replace it by a copy of itself")
        path.with_suffix(".copy").write_bytes(path.read_bytes())
        path.with_suffix(".copy").replace(path)
        assert safe_external_path(tmp_path / "model", location) == path
        (tmp_path / "secret").unlink()


def test_hard_link_that_comes_after_the_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened is what is looked at."""
    (tmp_path / "weights.bin").write_bytes(b"x" * 16)
    opened = os.open

    def link_first(path: Path, flags: int) -> int:
        (tmp_path / "other").hardlink_to(tmp_path / "weights.bin")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", link_first)
    with pytest.raises(ModelError, match="outside"):
        read_external_file(tmp_path, "weights.bin", 0, 16)


def test_checksums_of_external_data(tmp_path: Path) -> None:
    """The sha1 of the whole file where a tensor states one, in either case; empty is none; anything
    else names tensor and file."""
    content = np.arange(4, dtype=np.float32).tobytes()
    (tmp_path / "weights.bin").write_bytes(content + b"more")
    right = hashlib.sha1(content + b"more").hexdigest()
    for stated in (right, right.upper(), ""):
        _import_beside(tmp_path, _with_external("weights.bin", checksum=stated))
    for stated in (
        hashlib.sha1(content).hexdigest(),
        hashlib.sha256(content + b"more").hexdigest(),
        "crc32:1",
        right[:-1],
    ):
        with pytest.raises(ModelError, match="checksum") as caught:
            _import_beside(tmp_path, _with_external("weights.bin", checksum=stated))
        assert caught.value.where == "initializer 'w', location 'weights.bin'"
        assert caught.value.why == f"expected sha1 {stated}, got {right}"
    (tmp_path / "weights.bin").write_bytes(content + b"else")
    with pytest.raises(ModelError, match="checksum"):
        _import_beside(tmp_path, _with_external("weights.bin", checksum=right))


def test_checksum_is_taken_once_per_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have many tensors."""
    content, taken = np.arange(4, dtype=np.float32).tobytes(), list[bytes]()
    (tmp_path / "weights.bin").write_bytes(content)
    sha1 = hashlib.sha1

    def counted(data: memoryview, **options: bool) -> object:
        taken.append(bytes(data))
        return sha1(data, **options)

    monkeypatch.setattr(hashlib, "sha1", counted)
    _import_beside(
        tmp_path, _with_external("weights.bin", checksum=sha1(content).hexdigest(), count=3)
    )
    assert taken == [content]


def test_missing_external_data(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(ModelError, match="missing") as caught:
        _import_beside(tmp_path, _with_external("weights.bin"))
    assert "weights.bin" in caught.value.where


def test_short_external_data(tmp_path: Path) -> None:
    """A file that ends inside the tensor is refused, with expected and got."""
    (tmp_path / "weights.bin").write_bytes(b"x" * 15)
    with pytest.raises(ModelError, match="too short") as caught:
        _import_beside(tmp_path, _with_external("weights.bin"))
    assert "expected 16 bytes" in caught.value.why


@pytest.mark.parametrize(("offset", "length"), [(-1, 16), (0, 15), (0, 1 << 60), (1 << 62, None)])
def test_lying_external_entries(tmp_path: Path, offset: int, length: int | None) -> None:
    """Offsets and lengths that contradict the tensor or the file are refused before anything is
    read."""
    (tmp_path / "weights.bin").write_bytes(b"x" * 16)
    with pytest.raises(ModelError):
        _import_beside(tmp_path, _with_external("weights.bin", offset, length))


def test_folder_as_external_data(tmp_path: Path) -> None:
    """A folder is no file."""
    (tmp_path / "weights.bin").mkdir()
    with pytest.raises(ModelError, match="not a file"):
        safe_external_path(tmp_path, "weights.bin")


def test_weights_come_from_views_of_the_file() -> None:
    """Large weights reach the store as they lie in the file, whatever protobuf library parses the
    rest."""
    store = MemoryStore()
    graph_of(relu_chain(), store)
    assert np.arange(3 * 512, dtype="<f4").tobytes() in store.constants.values()
