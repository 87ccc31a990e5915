"""A/B installation: the power is cut at every operation on the disk, and the old bundle or the new
one is there, whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.command import main as device
from ingot_runtime.errors import InputError, ResourceError
from ingot_runtime.files import Files
from ingot_runtime.install import CURRENT, current, install, installed, rollback

Output = pytest.CaptureFixture[str]
OLD, NEW, BESIDE = b"old" * 1000, b"new" * 1500, b"signature"
CHUNK = 1000


class PowerCutError(Exception):
    """The machine stopped before the operation."""


class FaultyDisk(Files):
    """A disk whose power is cut before operation number ``at``. What was written and not synced is
    lost then; of the names that were changed since the last sync of their folder, the first
    ``names_kept`` have reached the disk, in their order, as a journal keeps them."""

    def __init__(self, folder: Path, at: int, names_kept: int) -> None:
        self.folder, self.at, self.names_kept = folder, at, names_kept
        self.count = 0
        self.unsynced: dict[str, bool] = {}
        self.undo: list[Callable[[], None]] = []

    def _next(self) -> None:
        if self.count == self.at:
            raise PowerCutError
        self.count += 1

    def cut(self) -> None:
        """Make the folder what it is after the power is back."""
        for path in self.unsynced:
            for name in os.listdir(self.folder):
                whole = self.folder / name
                if not whole.is_symlink() and os.path.samefile(path, whole):
                    os.truncate(whole, os.path.getsize(whole) // 2)
        for back in reversed(self.undo[self.names_kept :]):
            back()

    def write(self, path: str, data: bytes, at: int) -> None:
        self._next()
        if not os.path.exists(path):
            self.undo.append(lambda: os.unlink(path))
        super().write(path, data, at)
        self.unsynced[path] = True

    def sync(self, path: str) -> None:
        self._next()
        super().sync(path)
        if os.path.isdir(path):
            self.undo.clear()
        self.unsynced.pop(path, None)

    def rename(self, source: str, target: str) -> None:
        self._next()
        kept = _kept(target)
        super().rename(source, target)
        if source in self.unsynced:
            self.unsynced[target] = self.unsynced.pop(source)

        def back() -> None:
            os.rename(target, source)
            kept()

        self.undo.append(back)

    def link(self, target: str, path: str) -> None:
        self._next()
        super().link(target, path)
        self.undo.append(lambda: os.unlink(path))

    def remove(self, path: str) -> None:
        self._next()
        self.undo.append(_kept(path))
        super().remove(path)


def _kept(path: str) -> Callable[[], None]:
    """What puts a name back as it is now."""
    if os.path.islink(path):
        link = os.readlink(path)
        return lambda: os.symlink(link, path)
    if os.path.exists(path):
        content = Path(path).read_bytes()

        def again() -> None:
            Path(path).write_bytes(content)

        return again
    return lambda: None


def chunks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))


def put(folder: Path, data: bytes, digit: str, files: Files | None = None, keep: int = 2) -> str:
    return install(chunks(data), BESIDE, digit * 64, str(folder), keep, files)


def content(folder: Path) -> bytes:
    return (folder / CURRENT).read_bytes()


def cuts(start: Path, tmp_path: Path, act: Callable[[Path, Files], object]) -> Iterator[Path]:
    """The folder after a power cut before each operation of ``act``, with every number of names that
    can have reached the disk; at the end, without one."""
    at, is_done = 0, False
    while not is_done:
        for names_kept in range(4):
            folder = tmp_path / f"cut-{at}-{names_kept}"
            shutil.copytree(start, folder, symlinks=True)
            disk = FaultyDisk(folder, at, names_kept)
            try:
                act(folder, disk)
                is_done = True
            except PowerCutError:
                disk.cut()
            yield folder
        at += 1
    assert at > 3


def test_a_power_cut_leaves_the_old_or_the_new_one(tmp_path: Path) -> None:
    """Before each operation; an installation after it works, and leaves nothing of the one that was
    cut."""
    start = tmp_path / "start"
    start.mkdir()
    put(start, OLD, "a")
    seen: set[bytes] = set()
    for folder in cuts(start, tmp_path, lambda folder, disk: put(folder, NEW, "b", disk)):
        found = content(folder)
        assert found in (OLD, NEW)
        seen.add(found)
        assert os.path.realpath(folder / CURRENT) == str(folder / str(current(str(folder))))
        assert (folder / f"{current(str(folder))}.sig").read_bytes() == BESIDE
        put(folder, NEW, "c")
        assert content(folder) == NEW
        assert not [name for name in os.listdir(folder) if name.endswith(".part")]
        assert rollback(str(folder))
        assert content(folder) == found
    assert seen == {OLD, NEW}


def test_a_power_cut_while_going_back(tmp_path: Path) -> None:
    """Either of the two is current, and going back again leads to the older one."""
    start = tmp_path / "start"
    start.mkdir()
    put(start, OLD, "a")
    put(start, NEW, "b")
    seen: set[bytes] = set()
    for folder in cuts(start, tmp_path, lambda folder, disk: rollback(str(folder), disk)):
        seen.add(content(folder))
        if content(folder) == NEW:
            rollback(str(folder))
        assert content(folder) == OLD
    assert seen == {OLD, NEW}


def test_the_first_installation(tmp_path: Path) -> None:
    """A cut leaves nothing current, or the new one."""
    start = tmp_path / "start"
    start.mkdir()
    for folder in cuts(start, tmp_path, lambda folder, disk: put(folder, NEW, "b", disk)):
        assert current(str(folder)) is None or content(folder) == NEW
        put(folder, OLD, "a")
        assert content(folder) == OLD


def test_so_many_are_kept(tmp_path: Path) -> None:
    """The newest; after a way back, what was left is gone with the next one."""
    for digit in "abcd":
        put(tmp_path, digit.encode(), digit, keep=3)
    assert [name[:8] for name in installed(str(tmp_path))] == ["000002-b", "000003-c", "000004-d"]
    rollback(str(tmp_path))
    rollback(str(tmp_path))
    assert content(tmp_path) == b"b"
    with pytest.raises(InputError, match="nothing to go back to"):
        rollback(str(tmp_path))
    put(tmp_path, b"e", "e", keep=1)
    assert [name[:8] for name in installed(str(tmp_path))] == ["000003-e"]
    assert sorted(os.listdir(tmp_path)) == ["000003-eeeeeeeeeeeeeeee.ingot",
        "000003-eeeeeeeeeeeeeeee.ingot.sig", CURRENT]  # fmt: skip


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    """Each an error in four parts: no folder, nothing installed, a disk that refuses."""
    with pytest.raises(ResourceError, match="cannot write"):
        put(tmp_path / "none", OLD, "a")
    with pytest.raises(InputError, match="nothing is installed"):
        rollback(str(tmp_path))

    class Full(Files):
        def write(self, path: str, data: bytes, at: int) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(ResourceError, match="No space left"):
        put(tmp_path, OLD, "a", Full())


def test_the_command(tmp_path: Path, capsys: Output) -> None:
    """A bundle is verified, copied, loaded under the name that stays, and given back."""
    folder, path = tmp_path / "slots", tmp_path / "m.ingot"
    folder.mkdir()
    write_bundle(tiny_contents(), path, tree_entry)
    line = ["install", str(path), "--to", str(folder)]
    assert device(line) == 0
    assert "installed" in capsys.readouterr().out
    assert device([*line, "--json"]) == 0
    told = checked("device-install", capsys.readouterr().out)
    assert told["installed"].startswith(f"{folder}/000002-{told['digest'][:16]}")
    ingot_runtime.load(folder / CURRENT).close()
    assert content(folder) == path.read_bytes()
    assert device(["rollback", str(folder), "--json"]) == 0
    assert "000001-" in checked("device-rollback", capsys.readouterr().out)["installed"]
    assert device(["rollback", str(folder)]) == 1
    assert device([*line, "--keep", "0"]) == 1
    damaged = bytearray(path.read_bytes())
    damaged[200] ^= 1
    path.write_bytes(damaged)
    assert device(line) == 4
    assert len(installed(str(folder))) == 2
