"""``ingot delta`` and ``apply``: a new bundle of an old one, whole or not at all, and gone on with
where it stopped."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked
from tests.unit.runtime.test_install import FaultyDisk, PowerCutError
from tests.unit.runtime.test_signatures import Owner, sign

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.ship.delta import write_delta
from ingot_runtime import apply_delta as applying
from ingot_runtime.apply_delta import apply_delta
from ingot_runtime.command import main as device
from ingot_runtime.errors import (
    BundleError,
    DigestError,
    FileError,
    FormatError,
    InputError,
    NotABundleError,
    ResourceError,
    SignatureError,
)
from ingot_runtime.files import Files
from ingot_runtime.format.delta import HEAD, PROMISE
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
    assert device(["apply", str(path), str(tmp_path / "none"), "-o", str(path)]) == 1
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


def steps_at(data: bytes) -> int:
    """Where the steps of a delta begin."""
    table_bytes, signatures_bytes = PROMISE.unpack_from(data, HEAD.size)
    return HEAD.size + PROMISE.size + int(table_bytes) + int(signatures_bytes)


def of_version_1(data: bytes) -> bytes:
    """The same delta as it was made before its head told of the new bundle."""
    return resealed(data[:8] + b"\1" + data[9 : HEAD.size] + data[steps_at(data) : -32])


def _put(data: bytes, at: int, content: bytes) -> bytes:
    return resealed(data[:at] + content + data[at + len(content) : -32])


FORGERIES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: b"", "not a delta"),
    (lambda data: data[:100], "not a delta"),
    (lambda data: data[:-1], "the delta is damaged"),
    (lambda data: data[:500] + b"x" + data[501:], "the delta is damaged"),
    (lambda data: _put(data, 8, b"\3"), "unknown version"),
    (lambda data: _put(data, 80, b"\1"), "truncated or extended"),
    (lambda data: _put(of_version_1(data), 80, b"\1"), "another size"),
    (lambda data: _put(data, 92, b"\1"), "ends too early"),
    (lambda data: _put(data, 128, b"\0"), "the file ends inside its header|table"),
    (lambda data: _put(data, 133, b"\1"), "ends too early"),
    (lambda data: _put(data, 143, b"\1"), "ends too early"),
    (lambda data: _put(data, 144, b"\0"), "not a bundle"),
    (lambda data: _put(data, 250, b"\xfe"), "table"),
    (lambda data: _put(data, 48, b"\xfe"), "the head is of another bundle"),
    (lambda data: resealed(data[:-1000]), "no such bytes"),
    (lambda data: _put(data, steps_at(data), b"\xfe" * 8), "no such bytes"),
    (lambda data: _put(data, 96, bytes(32)), "another bundle came out"),
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
    assert isinstance(refused.value, FormatError | DigestError | NotABundleError)
    assert re.search(words, str(refused.value))
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
    body = data[: steps_at(data) + 16 * steps] + zlib.compress(bytes(64 * MIB))
    (tmp_path / "d").write_bytes(resealed(body))
    with pytest.raises(DigestError, match="another bundle came out"):
        apply_delta(str(files[0]), str(tmp_path / "d"), str(tmp_path / "o"))


def test_a_delta_of_version_1_is_applied(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """As ever, where nobody asks who signed; else its head has nothing to say."""
    old, new, delta = files
    path, out = tmp_path / "d", tmp_path / "out.ingot"
    path.write_bytes(of_version_1(delta.read_bytes()))
    assert apply_delta(str(old), str(path), str(out))
    assert out.read_bytes() == new.read_bytes()
    key = Owner(tmp_path, "alice", 1).public
    with pytest.raises(SignatureError, match="does not tell who signed"):
        apply_delta(str(old), str(path), str(out), keys=[key])


@pytest.mark.parametrize("where", ["inside", "beside"])
def test_a_delta_is_believed_before_it_is_made(
    where: str, files: tuple[Path, Path, Path], tmp_path: Path, capsys: Output
) -> None:
    """Who asks for keys gets what their owner has signed, in the bundle or beside it; of anything
    else, whatever it promises, not a byte is written."""
    old, new, unsigned = files
    alice, bob = Owner(tmp_path, "alice", 1), Owner(tmp_path, "bob", 2)
    signed, delta, out = tmp_path / "s.ingot", tmp_path / "d", tmp_path / "o" / "out.ingot"
    out.parent.mkdir()
    signed.write_bytes(new.read_bytes())
    sign(signed, alice, *(["--detached"] if where == "beside" else []))
    write_delta(str(old), str(signed), str(delta))
    line = ["apply", str(old), "", "-o", str(out), "--require-key"]
    for path, key in ((unsigned, alice), (delta, bob)):
        line[2] = str(path)
        assert device([*line, str(key.public)]) == 4
        assert "is not signed" in capsys.readouterr().err
        assert not [*out.parent.iterdir()]
    assert device([*line, str(alice.public)]) == 0
    assert out.read_bytes() == signed.read_bytes()


def test_a_signature_does_not_make_room(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Sections of signatures are in no statement: they take no more than the head of the delta
    has."""
    signed, delta = tmp_path / "s.ingot", tmp_path / "d"
    signed.write_bytes(files[1].read_bytes())
    sign(signed, Owner(tmp_path, "alice", 1))
    write_delta(str(files[0]), str(signed), str(delta))
    data = delta.read_bytes()
    table_bytes, signatures_bytes = PROMISE.unpack_from(data, HEAD.size)
    end = steps_at(data)
    body = data[: HEAD.size] + PROMISE.pack(table_bytes, 9) + data[144 : 144 + table_bytes]
    delta.write_bytes(resealed(body + data[end - signatures_bytes :][:9] + data[end:-32]))
    with pytest.raises(FormatError, match="signatures that are not there"):
        apply_delta(str(files[0]), str(delta), str(tmp_path / "o"))


def test_a_pipe_is_no_delta(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """It is refused at once: nobody may ever write into it."""
    os.mkfifo(tmp_path / "d")
    with pytest.raises(FileError, match="not a regular file"):
        apply_delta(str(files[0]), str(tmp_path / "d"), str(tmp_path / "o"))


def test_inflating_reads_given_bytes_once(
    files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the pieces are that it is asked for."""
    read = [0]
    plain = zlib.decompressobj

    class Counting:
        def __init__(self) -> None:
            self.inflater = plain()

        def decompress(self, data: bytes, size_bytes: int) -> bytes:
            read[0] += len(data)
            return self.inflater.decompress(data, size_bytes)

        @property
        def unconsumed_tail(self) -> bytes:
            return self.inflater.unconsumed_tail

    monkeypatch.setattr("ingot_runtime.apply_delta.zlib.decompressobj", Counting)
    monkeypatch.setattr(applying, "_CHUNK_SIZE_BYTES", 1 << 16)
    apply_delta(str(files[0]), str(files[2]), str(tmp_path / "o"))
    assert read[0] < 2.5 * files[2].stat().st_size


def test_a_full_disk_keeps_nothing(
    files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is known to have no room is not written to; one that turns out to have none is
    given back what it took."""
    monkeypatch.setattr(applying, "_CHUNK_SIZE_BYTES", 1 << 20)
    out, plain = tmp_path / "out.ingot", Files.write

    def write(self: Files, path: str, data: bytes, at: int) -> None:
        if at > MIB:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(self, path, data, at)

    monkeypatch.setattr(Files, "write", write)
    with pytest.raises(ResourceError, match="No space left"):
        apply_delta(str(files[0]), str(files[2]), str(out))
    assert not [*tmp_path.iterdir()]
    found = os.statvfs(tmp_path)
    little = os.statvfs_result((*found[:3], 10, 10, *found[5:]))

    def few(_: str) -> os.statvfs_result:
        return little

    monkeypatch.setattr("ingot_runtime.apply_delta.os.statvfs", few)
    with pytest.raises(ResourceError, match="not enough space"):
        apply_delta(str(files[0]), str(files[2]), str(out))
    assert not [*tmp_path.iterdir()]


def test_a_link_is_no_output(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """That of an installation would lead nowhere any more; it stays, and so does what it leads
    to."""
    old, _, delta = files
    link, there = tmp_path / "current.ingot", tmp_path / "000001-0123456789abcdef.ingot"
    there.write_bytes(old.read_bytes())
    link.symlink_to(there.name)
    with pytest.raises(InputError, match="the output is a symbolic link"):
        apply_delta(str(link), str(delta), str(link))
    assert link.is_symlink()
    assert there.read_bytes() == old.read_bytes()
    assert {*tmp_path.iterdir()} == {link, there}


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_planted_part_is_not_written_through(
    kind: str, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """A link in the place of what an attempt before may have left is removed."""
    old, new, delta = files
    out, victim = tmp_path / "out.ingot", tmp_path / "victim"
    digest = apply_delta(str(old), str(delta), str(out))
    victim.write_bytes(b"precious")
    part = tmp_path / f"out.ingot.{digest[:16]}.part"
    if kind == "hard":
        part.hardlink_to(victim)
    else:
        part.symlink_to(victim)
    apply_delta(str(old), str(delta), str(out))
    assert victim.read_bytes() == b"precious"
    assert out.read_bytes() == new.read_bytes()
