"""A/B installation of bundles whose weights lie in another one: that comes with the first that reads it,
goes with the last, and is whole whenever the power is cut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_reference
from tests.unit.cli.test_share import PAGE, X, run, share, write
from tests.unit.runtime.test_install import FaultyDisk, PowerCutError

import ingot_runtime
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device
from ingot_runtime.errors import InputError
from ingot_runtime.files import Files
from ingot_runtime.format.base import open_base
from ingot_runtime.format.limits import MIB
from ingot_runtime.format.source import read_plan
from ingot_runtime.install import CURRENT, install, installed, rollback
from ingot_runtime.installed_base import Base, content, near

Output = pytest.CaptureFixture[str]
SIZE = 3 * MIB


class LinkingDisk(FaultyDisk):
    """The faulty disk, with a name more for a file."""

    def hard_link(self, path: str, name: str) -> None:
        self._next()
        super().hard_link(path, name)
        self.undo.append(lambda: os.unlink(name))


class Shop:
    """Where bundles are made: ``fine(seed)`` over ``base``."""

    def __init__(self, folder: Path, seed: int, name: str = "base.ingot") -> None:
        folder.mkdir()
        self.folder, self.base = folder, write(folder / name, seed, SIZE)

    def fine(self, seed: int) -> Path:
        """A bundle whose kernel reads the weights of ``seed``, and which shares the rest."""
        return share(self.base, write(self.folder / f"fine-{seed}.ingot", seed, SIZE))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop", 0)


def put(bundle: Path, to: Path, keep: int = 2, files: Files | None = None) -> str:
    """Install it as the command does, on a disk that may fail."""
    with opened(bundle) as source:
        read_plan(source)
        open_base(source)
        base = None
        if source.shared is not None and source.base is not None:
            name = source.shared.name
            base = Base(source.base, name, near(str(to), source.base, name))
        digest = source.root_digest.hex()
        return install(content(source), b"", digest, str(to), keep, files, base)


def is_of(folder: Path, seed: int) -> bool:
    """Whether the current one computes what a bundle of this seed does; all its bytes are verified."""
    return run(folder / CURRENT).tobytes() == tiny_reference(X, seed).tobytes()


def cuts(
    start: Path,
    act: Callable[[Path, Files], object],
    after: Callable[[Path], None],
    names: Iterable[int] = range(5),
) -> None:
    """Call ``after`` with the folder after a power cut before each operation of ``act``, with each of
    these numbers of names that have reached the disk; at the end, without one."""
    at, is_done, folder = 0, False, start.with_name("cut")
    while not is_done:
        for names_kept in names:
            shutil.copytree(start, folder, symlinks=True)
            disk = LinkingDisk(folder, at, names_kept)
            try:
                act(folder, disk)
                is_done = True
            except PowerCutError:
                disk.cut()
            after(folder)
            shutil.rmtree(folder)
        at += 1
    assert at > 3


def others(folder: Path) -> list[str]:
    """What lies there beside the link and installed bundles."""
    return sorted(set(os.listdir(folder)) - {CURRENT, *installed(str(folder))})


@pytest.mark.broad
def test_a_power_cut_leaves_the_old_or_the_new_one(shop: Shop, tmp_path: Path) -> None:
    """The new one brings the other bundle, and the one before goes with its own: before each
    operation there is a current one, whole, and the next installation leaves nothing of the cut."""
    start = tmp_path / "start"
    start.mkdir()
    older = Shop(tmp_path / "older", 7, "older.ingot").fine(3)
    put(older, start)
    new, seen = shop.fine(1), set[bool]()

    def after(folder: Path) -> None:
        is_new = is_of(folder, 1)
        assert is_new or is_of(folder, 3)
        seen.add(is_new)
        put(new, folder, keep=1)
        assert is_of(folder, 1)
        assert others(folder) == ["base.ingot"]

    cuts(start, lambda folder, disk: put(new, folder, 1, disk), after)
    assert seen == {True, False}


@pytest.mark.broad
def test_a_power_cut_while_another_name_is_given(shop: Shop, tmp_path: Path) -> None:
    """The other bundle was installed itself: it is linked, and stays when it is no more installed."""
    start = tmp_path / "start"
    start.mkdir()
    put(shop.base, start)
    new = shop.fine(1)

    def after(folder: Path) -> None:
        assert is_of(folder, 0) or is_of(folder, 1)
        put(new, folder, keep=1)
        assert is_of(folder, 1)
        assert others(folder) == ["base.ingot"]

    cuts(start, lambda folder, disk: put(new, folder, 1, disk), after, (0, 2, 4))


def test_a_power_cut_while_going_back(shop: Shop, tmp_path: Path) -> None:
    """Either is current, and both bundles with weights stay."""
    start = tmp_path / "start"
    start.mkdir()
    put(Shop(tmp_path / "older", 7, "older.ingot").fine(3), start)
    put(shop.fine(1), start)

    def after(folder: Path) -> None:
        if is_of(folder, 1):
            rollback(str(folder))
        assert is_of(folder, 3)
        assert others(folder) == ["base.ingot", "older.ingot"]

    cuts(start, lambda folder, disk: rollback(str(folder), disk), after, (0, 1, 2))


def test_the_command(shop: Shop, tmp_path: Path, capsys: Output) -> None:
    """Side by side: one folder for the model and one for each fine-tune of it, A/B each; the file
    with the weights is one on the disk, under three names."""
    first, second = shop.fine(1), shop.fine(2)
    folders = [tmp_path / name for name in ("base", "first", "second")]
    for folder in folders:
        folder.mkdir()
    assert device(["install", str(shop.base), "--to", str(folders[0])]) == 0
    for path, folder in ((first, folders[1]), (second, folders[2])):
        line = ["install", str(path), "--to", str(folder), "--weights-from", str(folders[0])]
        assert device(line) == 0
    shutil.rmtree(shop.folder)
    (whole,) = installed(str(folders[0]))
    files = [folders[0] / whole, *(folder / "base.ingot" for folder in folders[1:])]
    assert len({path.stat().st_ino for path in files}) == 1
    later = Shop(tmp_path / "later", 9)
    for _ in range(2):  # the old one is no more installed, but for those that read it
        assert device(["install", str(later.base), "--to", str(folders[0])]) == 0
    assert whole not in installed(str(folders[0]))
    assert [is_of(folder, seed) for seed, folder in enumerate(folders[1:], 1)] == [True, True]
    capsys.readouterr()
    line = ["install", str(later.fine(4)), "--to", str(folders[1])]
    assert device(line) == 1
    told = capsys.readouterr().err
    assert "another file has the name of the bundle with the weights" in told
    assert "`ingot share` with a bundle of another name" in told
    assert is_of(folders[1], 1)
    assert others(folders[1]) == ["base.ingot"]
    (tmp_path / "none").mkdir()
    assert device([*line[:-1], str(folders[2]), "--weights-from", str(tmp_path / "none")]) == 1
    assert "the bundle with the weights is not there" in capsys.readouterr().err


def test_a_delta_between_two_fine_tunes(shop: Shop, tmp_path: Path) -> None:
    """It has their own pages alone. It is applied to the installed one, in its folder, where the other
    bundle is; then that is installed."""
    old, new, to = shop.fine(1), shop.fine(2), tmp_path / "to"
    to.mkdir()
    put(old, to)
    delta, made = shop.folder / "d", to / "received.ingot"
    assert main(["delta", str(old), str(new), "-o", str(delta)]) == 0
    assert delta.stat().st_size < 2 * PAGE
    assert device(["apply", str(to / CURRENT), str(delta), "-o", str(made)]) == 0
    assert made.read_bytes() == new.read_bytes()
    assert device(["install", str(made), "--to", str(to)]) == 0
    made.unlink()
    assert is_of(to, 2)
    assert others(to) == ["base.ingot"]
    assert device(["rollback", str(to)]) == 0
    assert is_of(to, 1)


def test_the_last_reader_takes_it_away(shop: Shop, tmp_path: Path) -> None:
    """Not the one before; a whole bundle afterwards has nothing beside it."""
    to = tmp_path / "to"
    to.mkdir()
    for seed in (1, 2):
        put(shop.fine(seed), to)
    whole = write(tmp_path / "whole.ingot", 5, SIZE)
    put(whole, to)
    assert others(to) == ["base.ingot"]
    assert is_of(to, 5)
    rollback(str(to))
    assert is_of(to, 2)
    for _ in range(2):
        put(whole, to)
    assert others(to) == []


def test_one_that_was_damaged_there(shop: Shop, tmp_path: Path) -> None:
    """The next installation replaces it, also where two names lead to it."""
    to, fine = tmp_path / "to", shop.fine(1)
    to.mkdir()
    put(shop.base, to)
    put(fine, to)
    with (to / "base.ingot").open("r+b") as file:
        file.seek(-PAGE, os.SEEK_END)
        file.write(b"????")
    with pytest.raises(ingot_runtime.IngotError):
        run(to / CURRENT)
    put(fine, to)
    assert is_of(to, 1)


def test_a_file_system_without_links(shop: Shop, tmp_path: Path) -> None:
    """It is copied."""

    class NoLinks(Files):
        def hard_link(self, path: str, name: str) -> None:
            raise PermissionError(1, "Operation not permitted")

    put(shop.base, tmp_path)
    put(shop.fine(1), tmp_path, files=NoLinks())
    assert is_of(tmp_path, 1)
    assert (tmp_path / "base.ingot").stat().st_nlink == 1


@pytest.mark.parametrize("name", [CURRENT, "000001-abc.ingot", "000002-abc.ingot.part"])
def test_a_name_that_installations_have(tmp_path: Path, name: str) -> None:
    """It would be taken for one of them."""
    shop = Shop(tmp_path / "shop", 0, name)
    (tmp_path / "to").mkdir()
    with pytest.raises(InputError, match="weights lie in a bundle called"):
        put(shop.fine(1), tmp_path / "to")
    assert not os.listdir(tmp_path / "to")
