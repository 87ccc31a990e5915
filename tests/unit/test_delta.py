"""``ingot delta`` and ``apply``: a new bundle of an old one, whole or not at all, and gone on with
where it stopped."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked
from tests.unit.test_install import FaultyDisk, PowerCutError

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.cli.main import main
from ingot_build_rules.ship.delta import write_delta
from ingot_runtime import apply_delta as applying
from ingot_runtime.apply_delta import apply_delta
from ingot_runtime.command import main as device
from ingot_runtime.errors import BundleError, DigestError, FormatError
from ingot_runtime.files import Files
from ingot_runtime.format.limits import MIB

Output = pytest.CaptureFixture[str]
LAYER = 3 * MIB // 2, 2 * MIB  # where the weights differ


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Two bundles with 4 MiB of weights, of which one layer differs; a delta."""
    folder = tmp_path_factory.mktemp("delta")
    numbers = np.random.RandomState(1)
    weights = bytearray(numbers.bytes(4 * MIB))
    old, new, delta = folder / "old.ingot", folder / "new.ingot", folder / "delta"
    contents = tiny_contents()
    for path in (old, new):
        whole = replace(
            contents, weights=((0, memoryview(bytes(weights))),), weights_bytes=(4 * MIB,)
        )
        write_bundle(whole, path, tree_entry)
        weights[LAYER[0] : LAYER[1]] = numbers.bytes(LAYER[1] - LAYER[0])
        contents = replace(contents, lock={"more": "x" * 70_000})  # moves all that is behind
    write_delta(str(old), str(new), str(delta))
    return old, new, delta


def test_what_differs_is_what_is_given(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A delta has one layer and little more, although everything behind the lock has moved; what
    comes out is the new one; the same again has the same bytes."""
    old, new, delta = files
    given = LAYER[1] - LAYER[0]
    assert given < delta.stat().st_size < given * 1.1
    write_delta(str(old), str(new), str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == delta.read_bytes()
    out = tmp_path / "out.ingot"
    apply_delta(str(old), str(delta), str(out))
    assert out.read_bytes() == new.read_bytes()


def test_the_commands(files: tuple[Path, Path, Path], tmp_path: Path, capsys: Output) -> None:
    """Made, applied in the old one's place, refused for another bundle."""
    old, new, _ = files
    made, path = tmp_path / "d", tmp_path / "m.ingot"
    path.write_bytes(old.read_bytes())
    tiny = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), tiny, tree_entry)
    assert main(["delta", str(tiny), str(tiny), "-o", str(made), "--json"]) == 0
    assert checked("delta", capsys.readouterr().out)["given_bytes"] == 0
    assert device(["apply", str(path), str(made), "-o", str(path)]) == 4
    assert "for another bundle" in capsys.readouterr().err
    assert device(["apply", str(path), str(tmp_path / "none"), "-o", str(path)]) == 2
    write_delta(str(old), str(new), str(made))
    capsys.readouterr()
    assert device(["apply", str(path), str(made), "-o", str(path), "--json"]) == 0
    assert checked("device-apply", capsys.readouterr().out)["output"] == str(path)
    assert path.read_bytes() == new.read_bytes()


def test_a_power_cut_leaves_no_half(
    files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each operation: the old one or the new one is there, and the next attempt goes on with
    what is left, also where the disk lost half of it."""
    monkeypatch.setattr(applying, "_CHUNK_SIZE_BYTES", 1 << 20)
    old, new, delta = files
    attempts = count()
    for at in attempts:
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "m.ingot"
        path.write_bytes(old.read_bytes())
        disk = FaultyDisk(folder, at, names_kept=at % 3)
        try:
            apply_delta(str(path), str(delta), str(path), disk)
            break
        except PowerCutError:
            disk.cut()
        assert path.read_bytes() in (old.read_bytes(), new.read_bytes())
        if path.read_bytes() == old.read_bytes():
            apply_delta(str(path), str(delta), str(path))
        assert path.read_bytes() == new.read_bytes()
        assert [it.name for it in folder.iterdir()] == ["m.ingot"]
    assert next(attempts) > 7


def test_it_goes_on_where_it_stopped(
    files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is there is written again; damage of it is found, and it is made once more."""
    old, new, delta = files
    out = tmp_path / "out.ingot"
    part = tmp_path / f"out.ingot.{apply_delta(str(old), str(delta), str(out))[:16]}.part"
    written: list[int] = []
    plain = Files.write

    def write(self: Files, path: str, data: bytes, at: int) -> None:
        written.append(at)
        plain(self, path, data, at)

    monkeypatch.setattr(Files, "write", write)
    for content in (new.read_bytes()[: 3 * MIB], bytes(3 * MIB), bytes(99 * MIB)):
        written.clear()
        part.write_bytes(content)
        apply_delta(str(old), str(delta), str(out))
        assert out.read_bytes() == new.read_bytes()
        assert (min(written) == 3 * MIB) == (content[:1] != b"\0")


def resealed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


FORGERIES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: b"", "not a delta"),
    (lambda data: data[:100], "not a delta"),
    (lambda data: data[:-1], "the delta is damaged"),
    (lambda data: data[:500] + b"x" + data[501:], "the delta is damaged"),
    (lambda data: resealed(data[:8] + b"\2" + data[9:-32]), "unknown version"),
    (lambda data: resealed(data[:80] + b"\1" + data[81:-32]), "another size"),
    (lambda data: resealed(data[:92] + b"\1" + data[93:-32]), "ends too early"),
    (lambda data: resealed(data[:-1000]), "no such bytes"),
    (lambda data: resealed(data[:128] + b"\xfe" * 8 + data[136:-32]), "no such bytes"),
    (lambda data: resealed(data[:96] + bytes(32) + data[128:-32]), "another bundle came out"),
]


@pytest.mark.parametrize(("change", "words"), FORGERIES)
def test_a_delta_that_is_none(
    change: Callable[[bytes], bytes],
    words: str,
    files: tuple[Path, Path, Path],
    tmp_path: Path,
) -> None:
    """Damaged, or made to look whole: refused, and the output is what it was."""
    forged, out = tmp_path / "d", tmp_path / "out.ingot"
    forged.write_bytes(change(files[2].read_bytes()))
    out.write_bytes(b"before")
    with pytest.raises(BundleError) as refused:
        apply_delta(str(files[0]), str(forged), str(out))
    assert isinstance(refused.value, FormatError | DigestError)
    assert words in str(refused.value)
    assert out.read_bytes() == b"before"


def test_a_damaged_old_bundle_is_found(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Its weights are not verified before, but what comes out is."""
    damaged = bytearray(files[0].read_bytes())
    damaged[-100] ^= 1
    path = tmp_path / "m.ingot"
    path.write_bytes(damaged)
    with pytest.raises(DigestError, match="the old bundle is damaged"):
        apply_delta(str(path), str(files[2]), str(path))
    assert path.read_bytes() == bytes(damaged)
    assert [it.name for it in tmp_path.iterdir()] == ["m.ingot"]


def test_given_bytes_are_inflated_no_further_than_promised(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """A stream that grows without end is read as far as the steps go."""
    data = files[2].read_bytes()
    steps = int.from_bytes(data[88:96], "little")
    body = data[: 128 + 16 * steps] + zlib.compress(bytes(64 * MIB))
    (tmp_path / "d").write_bytes(resealed(body))
    with pytest.raises(DigestError, match="another bundle came out"):
        apply_delta(str(files[0]), str(tmp_path / "d"), str(tmp_path / "o"))
