"""Files that are no model, or half a one: each is refused in four parts, never by another
exception."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.hostile.model_builder import FLOAT, graph_of, load, model, relu_chain, value
from tests.unit.frontend_harness import MemoryStore

from ingot_compiler.frontend.external_data import read_external_file, safe_external_path
from ingot_compiler.frontend.import_model import import_model
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
    """Neither a file nor a folder on the way may be a link."""
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
