"""Archives of inputs that anybody may have written: read right, or refused in four parts; never
waited for, never another exception."""

from __future__ import annotations

import io
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_runtime import command
from ingot_runtime.npz import read_npz, write_npz

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


def archive(compressed: bool = False) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(
        file, x=X, second=np.arange(3), third=np.asfortranarray(X)
    )
    return file.getvalue()


def member(
    header: bytes, data: bytes = X.tobytes(), version: tuple[int, int] = (1, 0), name: str = "x.npy"
) -> bytes:
    """Return an archive of one array whose header says anything."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
        made.writestr(name, b"\x93NUMPY" + bytes(version) + length + header + data)
    return file.getvalue()


def read(
    data: bytes, path: Path
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] | None:
    """Read an archive; None: refused as an input must be."""
    path.write_bytes(data)
    try:
        return read_npz(str(path))
    except ingot_runtime.InputError as error:
        refused = error
    assert refused.where == str(path)
    assert refused.why
    assert refused.do
    return None


@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_writes(tmp_path: Path, compressed: bool) -> None:
    """Both kinds of archive, both orders, any element type, no dimension and no element: as numpy
    reads them."""
    found = read(archive(compressed), tmp_path / "x.npz")
    assert found is not None
    assert list(found) == ["x", "second", "third"]
    assert (found["x"] == X).all()
    assert (found["third"] == X).all()
    assert found["second"].dtype == np.int64
    file = io.BytesIO()
    odd: dict[str, np.ndarray[Any, Any]] = {
        "a/b:0": np.asarray(np.float64(3)),
        "none": np.zeros((0, 3), np.float16),
        "big": np.arange(2, dtype=">i4"),
        "text": np.array(["ab"]),
    }
    write_npz(file, odd)
    found = read(file.getvalue(), tmp_path / "x.npz")
    assert found is not None
    for name, array in odd.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


HEADERS = {
    "huge": b"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 1152921504606846976)}",
    "large": b"{'descr': '<f4', 'fortran_order': False, 'shape': (68719476736,)}",
    "negative": b"{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -8)}",
    "no bytes": b"{'descr': '|V0', 'fortran_order': False, 'shape': (4611686018427387904,)}",
    "no elements": b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1180591620717411303424)}",
    "objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (4, 8)}",
    "no type": b"{'descr': 'nothing', 'fortran_order': False, 'shape': (4, 8)}",
    "odd type": b"{'descr': [('a', '<f4', (2, -1))], 'fortran_order': False, 'shape': (4,)}",
    "no map": b"[1, 2]",
    "no keys": b"{}",
    "no python": b"{'descr': ",
    "nested": b"(" * 9000,
    "nested more": b"[" * 190 + b"]" * 190,
    "sums": b"1+" * 4500 + b"1",
    "not ascii": b"\xff\xfe{}",
    "too long": b" " * 20000,
    "warned of": b"{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 8L)}",
    "warned of too": b"{'descr': '\\d', 'fortran_order': False, 'shape': (1is 1,)}",
    "other count": b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 7)}",
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_headers(tmp_path: Path, name: str) -> None:
    """A header that promises what is not there, or is none, is refused before any memory is asked
    for."""
    assert read(member(HEADERS[name] + b"\n"), tmp_path / "x.npz") is None
    assert read(member(HEADERS[name] + b"\n", version=(2, 0)), tmp_path / "x.npz") is None


def test_archives_that_are_none(tmp_path: Path) -> None:
    """Other files, other members, the same member twice, objects, a password, another way of
    compression."""
    good = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8)}\n"
    assert read(member(good), tmp_path / "x.npz") is not None
    one = io.BytesIO()
    np.save(one, X)
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as made:
        made.writestr("x.npy", one.getvalue())
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("x.npy", one.getvalue())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("x.npy", one.getvalue())
    locked = bytearray(member(good))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x.npy", one.getvalue())
    lies = bytearray(bomb.getvalue())
    at = lies.index(b"PK\x01\x02") + 24
    lies[at : at + 4] = struct.pack("<I", 0xFFFFFFF0)
    objects = io.BytesIO()
    np.savez(objects, x=np.array([{}], object))
    for data in (
        b"", b"x", one.getvalue(), twice.getvalue(), packed.getvalue(), bytes(locked), bytes(lies), objects.getvalue(),
        member(good, name="x"), member(good, version=(3, 0)), member(good, version=(9, 9)), member(good, X.tobytes() + b"x"),
    ):  # fmt: skip
        assert read(data, tmp_path / "x.npz") is None


def damaged(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield the archive with each byte of its heads changed in two ways, and cut at many places."""
    rng = random.Random(seed)
    starts = [
        at
        for at in range(len(data))
        if data[at : at + 4] in (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")
    ]
    places = sorted({at + step for at in starts for step in range(180) if at + step < len(data)})
    for at in places:
        for value in {0, 255, data[at] ^ 1 << rng.randrange(8), rng.randrange(256)} - {data[at]}:
            yield data[:at] + bytes((value,)) + data[at + 1 :]
    yield from (data[:end] for end in range(0, len(data), 7))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.sweep(2)
def test_damaged_archives(tmp_path: Path, compressed: bool) -> None:
    """Every damaged byte of an archive's heads: refused, or the arrays are right."""
    data = archive(compressed)
    results = [0, 0]
    for changed in damaged(data, 1):
        found = read(changed, tmp_path / "x.npz")
        results[found is None] += 1
        for array in (found or {}).values():
            assert zlib.crc32(array.tobytes()) in {
                zlib.crc32(each.tobytes()) for each in (X, np.arange(3), X.T.copy())
            }
    assert min(results) > 20


def test_files_that_make_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A named pipe, a device, a folder: refused at once by every command that reads a file."""
    bundle, pipe = tmp_path / "m.ingot", tmp_path / "pipe"
    write_bundle(tiny_contents(), bundle, tree_entry)
    os.mkfifo(pipe)
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project" / "ingot.toml")
    for path in (str(pipe), "/dev/zero", "/dev/stdin", str(tmp_path)):
        for arguments in (
            ["run", str(bundle), "--inputs", path], ["bench", str(bundle), "--inputs", path], ["run", path], ["inspect", path],
            ["verify", path], ["diff", str(bundle), path], ["compile", path, "-o", str(tmp_path / "o.ingot")],
            ["reproduce", str(bundle), "--source", str(tmp_path), "--lock", path],
        ):  # fmt: skip
            assert main(arguments) in ((1, 4) if arguments[0] == "reproduce" else (1,)), arguments
        assert command.main(["run", str(bundle), "--inputs", path]) == 1
        assert command.main(["run", path]) == 1
        assert command.main(["inspect", path]) == 1
    assert main(["build", "-C", str(tmp_path / "project")]) == 1
    assert main(["compile", "m.onnx", "-o", str(pipe)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "a bug in Ingot" not in printed.err
