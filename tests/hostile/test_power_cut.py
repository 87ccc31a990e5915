"""A power cut at any moment leaves the old bundle or the new one, whole; a cache loses work at
most.

``Disk`` is what a disk promises: bytes are there once their file was synced, a name once its folder
was. Everything else may be lost, each rename on its own, and a file that was not synced may be
there without its bytes.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.harness.build_harness import Workbench, chain, new_weight

import ingot
from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace import user_key as keys

TORN = b"torn"


@dataclass
class Disk:
    """Follows what is synced and renamed below ``folder``: ``states``: what each path may hold if
    the power is cut then."""

    folder: Path
    lasting: dict[Path, bytes | None] = field(default_factory=dict[Path, bytes | None])
    synced: dict[int, bytes] = field(default_factory=dict[int, bytes])
    pending: list[tuple[Path, bytes]] = field(default_factory=list[tuple[Path, bytes]])
    states: dict[Path, set[bytes | None]] = field(default_factory=dict[Path, set[bytes | None]])

    def __post_init__(self) -> None:
        """Take what is there as it is on the disk."""
        self.lasting = {
            path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }

    def follow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Listen to the calls that decide it."""
        fsync, replace, link = os.fsync, os.replace, os.link

        def synced(descriptor: int) -> None:
            fsync(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path.is_dir():
                self._folder_synced(path)
            else:
                self.synced[os.fstat(descriptor).st_ino] = path.read_bytes()
            self._look()

        def named(call: Callable[[str, str], None]) -> Callable[[str, str], None]:
            def name(old: str, new: str) -> None:
                content = Path(old).read_bytes()
                kept = self.synced.get(os.stat(old).st_ino) == content
                call(old, new)
                self.pending.append((Path(new), content if kept else TORN))
                self._look()

            return name

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", named(replace))
        monkeypatch.setattr(os, "link", named(link))

    def _folder_synced(self, folder: Path) -> None:
        self.lasting.update(
            (path, content) for path, content in self.pending if path.parent == folder
        )
        self.pending = [(path, content) for path, content in self.pending if path.parent != folder]

    def _look(self) -> None:
        for path in {*self.lasting, *(path for path, _ in self.pending)}:
            may_be = {
                self.lasting.get(path),
                *(content for name, content in self.pending if name == path),
            }
            self.states.setdefault(path, set()).update(may_be)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """Two bundles, one in a folder of its own, not built."""
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    models = {"a": chain([4, 8, 4]), "b": chain([4, 8, 4], seed=2)}
    bench.project(models)
    text = (bench.folder / "ingot.toml").read_text()
    bench.write(
        "ingot.toml",
        text.replace("[bundle.b]\n", '[bundle.b]\noutput = "dist/deep/below/b.ingot"\n'),
    )
    return bench


def outputs(bench: Workbench) -> dict[Path, bytes | None]:
    """Bundles and lock files that are there now."""
    return {
        path: path.read_bytes() for path in (bench.folder / "dist").rglob("*") if path.is_file()
    }


def test_bundle_is_old_or_new_after_a_power_cut(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each bundle and lock file, at each moment of a first and a second build; what a build says
    is there, is there."""
    before: dict[Path, bytes | None] = {}
    for build in range(2):
        with monkeypatch.context() as patch:
            disk = Disk(bench.folder)
            disk.follow(patch)
            assert (
                main(["build", "-j1", "-q", "-C", str(bench.folder), "--cache", str(bench.cache)])
                == 0
            )
        after = outputs(bench)
        assert len(after) == 4
        assert all(after[path] != before.get(path) for path in after)
        assert {path: disk.states[path] for path in after} == {
            path: {before.get(path), after[path]} for path in after
        }
        assert {path: disk.lasting.get(path) for path in after} == after
        before = after
        if build == 0:
            bench.edit("a", new_weight)
            bench.edit("b", new_weight)


def test_made_folders_are_on_the_disk(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a build makes for a bundle is synced into the one above it, up to the
    project's."""
    synced: set[Path] = set()
    fsync = os.fsync

    def note(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", note)
    assert main(["build", "-j1", "-q", "-C", str(bench.folder), "--cache", str(bench.cache)]) == 0
    assert synced >= {bench.folder / name for name in ("", "dist", "dist/deep", "dist/deep/below")}


def test_compiled_bundle_is_old_or_new(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ingot compile``, with and without a check, and ``Bundle.save``."""
    model, cache = str(bench.folder / "a.onnx"), str(bench.cache)
    path = bench.folder / "o.ingot"

    def compiled(*words: str) -> None:
        line = [
            "compile",
            model,
            "-q",
            "-j1",
            "--target",
            "x86-64-v3",
            "--cache",
            cache,
            "-o",
            str(path),
            *words,
        ]
        assert main(line) == 0

    ways: list[Callable[[], object]] = [
        compiled,
        lambda: compiled("--check"),
        lambda: ingot.compile(model, targets=["x86-64-v3"], cache=cache).save(path),
    ]
    for way in ways:
        path.unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            disk = Disk(bench.folder)
            disk.follow(patch)
            way()
        assert disk.states[path] == {None, path.read_bytes()}
        assert disk.lasting[path] == path.read_bytes()


def test_key_is_on_the_disk_before_it_seals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is lost makes every cache useless."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "ingot").mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(tmp_path)
        disk.follow(patch)
        key = keys.user_key()
    assert disk.states[tmp_path / "ingot/key"] == {None, key}
    assert disk.lasting[tmp_path / "ingot/key"] == key


def test_disk_that_fails_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a sync is an error of the write; a file system that cannot sync is no error."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def failing(code: int) -> None:
        def fail(_: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)

    failing(errno.EIO)
    with pytest.raises(OutputError), atomic_file(path, lasting=True) as file:
        file.write(b"new")
    assert [(item.name, item.read_bytes()) for item in tmp_path.iterdir()] == [("file", b"old")]
    failing(errno.EINVAL)
    with atomic_file(path, lasting=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def _empty(content: bytes) -> bytes:
    del content
    return b""


def _zeros(content: bytes) -> bytes:
    return bytes(len(content))


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2] + bytes(len(content) - len(content) // 2)


@pytest.mark.parametrize(
    ("tear", "share"),
    [*itertools.product((_empty, _zeros, _half), (0.3, 1.0)), (None, 0.3), (None, 1.0)],
)
@pytest.mark.sweep(12)
def test_cache_loses_work_at_most(
    bench: Workbench,
    tear: Callable[[bytes], bytes] | None,
    share: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Blobs that are torn or gone, and an index of an earlier moment: the same bundles come out,
    and then all is there again."""
    line = ["build", "-j1", "-C", str(bench.folder), "--cache", str(bench.cache)]
    assert main(line) == 0
    right = outputs(bench)
    chance = random.Random(7)
    for blob in sorted((bench.cache / "v1/cas").rglob("*")):
        if blob.is_file() and chance.random() < share:
            content = blob.read_bytes()
            blob.unlink()
            if tear is not None:
                blob.write_bytes(tear(content))
    shutil.rmtree(bench.folder / "dist")
    shutil.rmtree(bench.folder / ".ingot")
    assert main(line) == 0
    assert outputs(bench) == right
    shutil.rmtree(bench.folder / "dist")
    shutil.rmtree(bench.folder / ".ingot")
    capsys.readouterr()
    assert main(line) == 0
    assert "; 0 actions ran" in capsys.readouterr().out
    assert outputs(bench) == right
