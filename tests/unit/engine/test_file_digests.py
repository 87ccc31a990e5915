"""Digests of files: right whatever clocks and times say; and results of what changed while it was
read are not kept."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest
from tests.hostile.engine_harness import LOOK, Look, open_scheduler, ran
from tests.properties.engine_graphs import settle

from ingot_build_rules.engine.cache import file_digests
from ingot_build_rules.engine.cache.file_digests import DiskFiles, timestamp
from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_build_rules.making.stages.model_source import open_model
from ingot_compiler.ir.errors import UserError

KIND = "file digests 1"


def sha256(text: str) -> str:
    """Return what a file with this text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file count as old: digests are remembered at once."""
    monkeypatch.setattr(file_digests, "SETTLED_NS", -(10**12))


def remembered(state: Path, file: Path, text: str) -> None:
    """Let digests know a file with a text."""
    file.write_text(text)
    files = DiskFiles(str(state))
    assert files.digest(str(file)) == sha256(text)
    files.save()
    assert read_state(str(state), KIND)


def test_a_digest_is_remembered(tmp_path: Path, aged: None) -> None:
    """What is remembered of a file is what it looks like, and its digest; a file that is gone is
    remembered no worse."""
    state, file = tmp_path / "state", tmp_path / "file"
    remembered(state, file, "text")
    assert read_state(str(state), KIND) == {str(file): (*_stamp(file), sha256("text"))}
    file.unlink()
    assert DiskFiles(str(state)).digest(str(file)) == ""


def test_rehash_forgets_what_is_too_young_to_be_kept(tmp_path: Path) -> None:
    """A digest that was wrong is not there any more, though the right one cannot be kept yet."""
    state, file = tmp_path / "state", tmp_path / "file"
    file.write_text("text")
    write_state(str(state), KIND, {str(file): (*_stamp(file), sha256("other"))}, b"")
    files = DiskFiles(str(state), rehash=True)
    assert files.digest(str(file)) == sha256("text")
    files.save()
    assert DiskFiles(str(state)).digest(str(file)) == sha256("text")


def _stamp(file: Path) -> tuple[int, int, int, int]:
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns


@pytest.mark.parametrize("rename", [True, False])
def test_a_forged_time_is_found(tmp_path: Path, aged: None, *, rename: bool) -> None:
    """The same size and modification time, other content: the inode or its change time tell."""
    state, file, other = tmp_path / "state", tmp_path / "file", tmp_path / "other"
    remembered(state, file, "one")
    before = file.stat()
    settle()
    (other if rename else file).write_text("two")
    os.utime(other if rename else file, ns=(before.st_atime_ns, before.st_mtime_ns))
    if rename:
        other.rename(file)
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert DiskFiles(str(state)).digest(str(file)) == sha256("two")


def test_where_everything_is_forged_only_rehash_finds_it(tmp_path: Path, aged: None) -> None:
    """Who can write to the cache can lie about a file; whoever asks to look into every file is told
    the truth, and it stays."""
    state, file = tmp_path / "state", tmp_path / "file"
    remembered(state, file, "text")
    write_state(str(state), KIND, {str(file): (*_stamp(file), sha256("a lie"))})
    assert DiskFiles(str(state)).digest(str(file)) == sha256("a lie")
    files = DiskFiles(str(state), rehash=True)
    assert files.digest(str(file)) == sha256("text")
    files.save()
    assert DiskFiles(str(state)).digest(str(file)) == sha256("text")


def test_a_young_file_is_not_remembered(tmp_path: Path) -> None:
    """A file changed within two seconds before a build could change again without a sign: it is
    read again next time."""
    state, file = tmp_path / "state", tmp_path / "file"
    file.write_text("young")
    files = DiskFiles(str(state))
    assert files.digest(str(file)) == sha256("young")
    files.save()
    assert not state.exists()


@pytest.mark.parametrize("step_ns", [-(10**15), -3_000_000_000, 3_000_000_000, 10**15])
def test_the_clock_goes_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    """Between two builds the clock is set back or ahead, and files change at any of these times:
    digests are right."""
    state, file = tmp_path / "state", tmp_path / "file"
    real = time.time_ns
    for number, step in enumerate((0, step_ns, 0, step_ns)):
        monkeypatch.setattr(time, "time_ns", lambda step=step: real() + step)
        for text in (f"{number} a", f"{number} b"):
            file.write_text(text)
            os.utime(file, ns=(0, max(0, real() + step)))
            files = DiskFiles(str(state))
            assert files.digest(str(file)) == sha256(text)
            files.save()
            now_ns = real()
            while timestamp()[0] <= now_ns:
                time.sleep(0.001)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x00" * 100])
def test_a_damaged_memory_is_none(tmp_path: Path, content: bytes) -> None:
    """Whatever is in the file of digests, digests are right."""
    state, file = tmp_path / "state", tmp_path / "file"
    state.write_bytes(content)
    file.write_text("text")
    assert DiskFiles(str(state)).digest(str(file)) == sha256("text")
    write_state(str(state), KIND, {str(file): (1, 2, 3), "x": "y", 3: 4})
    assert DiskFiles(str(state)).digest(str(file)) == sha256("text")


def test_what_is_not_a_file_has_no_digest(tmp_path: Path) -> None:
    """A folder, nothing, a link to nothing; and a pipe, which does not hold anybody up."""
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    files = DiskFiles(None)
    assert [
        files.digest(str(tmp_path / name))
        for name in ("", "none", "link", "pipe", "none/file", "\0")
    ] == [""] * 6


def test_steady(tmp_path: Path) -> None:
    """A file is steady since a moment if it changed before it, or was seen before it; so is one
    that is not there."""
    file, files = tmp_path / "file", DiskFiles(None)
    path, missing = str(file), str(tmp_path / "folder" / "missing")
    before = timestamp()
    file.write_text("text")
    assert not files.is_steady(path, before)
    settle()
    start = timestamp()
    assert files.is_steady(path, start)
    assert files.is_steady(missing, start)
    file.write_text("text")
    assert not files.is_steady(path, start)
    files.digest(path)
    assert not files.is_steady(path, start)
    assert files.is_steady(path, timestamp())
    (tmp_path / "folder").mkdir()
    assert not files.is_steady(missing, start)
    files.digest(missing)
    assert files.is_steady(missing, timestamp())
    start = timestamp()
    file.unlink()
    assert not files.is_steady(path, start)


def look(folder: Path, do: str = "") -> tuple[str, int]:
    """Look at a file in a build; return what a rule saw, and how many actions ran."""
    with open_scheduler(folder / "cache") as build:
        text = build.run(build.need(LOOK, Look("file", str(folder), do)))
        return text, ran(build)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """An editor writes between a rule's read and the digest: the next build sees the new content,
    and from then on it is kept."""
    file = tmp_path / "file"
    file.write_text("old")
    settle()
    assert look(tmp_path, "new") == ("old", 1)
    settle()
    assert look(tmp_path) == ("new", 1)
    assert look(tmp_path) == ("new", 0)
    file.write_text("old")
    settle()
    assert look(tmp_path) == ("old", 1)
    assert look(tmp_path) == ("old", 0)


def test_a_file_that_is_written_while_a_build_begins(tmp_path: Path) -> None:
    """What was written in the same tick of the clock may be looked at once more; then it is
    kept."""
    (tmp_path / "file").write_text("text")
    runs = [look(tmp_path)[1] for _ in range(3)]
    assert runs[0] == 1
    assert runs[1] in (0, 1)
    assert runs[2] == 0


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    """What does not give the same bytes twice is refused at once, and nobody waits for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UserError, match="the model is not a file"):
            open_model(path, DiskFiles(None).digest)
