"""What a workspace remembers is never trusted: damaged, foreign, forged; builds that are
interrupted, killed, or two at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.harness.build_harness import TARGET, Workbench, chain, new_weight, ran

from ingot_build_rules.engine.cache import unchanged
from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.engine.cache.state_file import write_state
from ingot_build_rules.tools.cli.building.no_op import is_no_op
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace.build_report import Report
from ingot_build_rules.tools.workspace.open_workspace import load_project
from ingot_build_rules.tools.workspace.state import read_workspace, write_workspace
from ingot_build_rules.tools.workspace.user_key import user_key
from ingot_compiler.ir.errors import UserError

SEED = 5
KILL_COUNT = 40


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A built project over the cache that all tests share."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    return bench


def flipped(content: bytes) -> bytes:
    """One bit of one byte is another one."""
    at = random.Random(SEED).randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "flipped": flipped,
    "zeros": lambda content: bytes(len(content)),
    "text": lambda _: b"not a state file",
    "another version": lambda content: content.replace(b"ingot", b"ignot", 1),
}


def asked_for(report: Report) -> list[str]:
    """Names of the bundles that were looked at again, whether or not they have other bytes now."""
    return [item.name for item in report.results if item.is_bundle_made]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_memory_is_no_memory(bench: Workbench, damage: str) -> None:
    """Every file of ``.ingot``, damaged in every way: the bundle is looked at again, nothing runs,
    nothing fails."""
    for path in [path for path in (bench.folder / ".ingot").rglob("*") if path.is_file()]:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    report = bench.build()
    assert (asked_for(report), ran(report)) == (["a"], {})
    assert bench.build().named("unchanged") == ["a"]
    bench.edit("a", new_weight)
    bench.build()
    assert bench.build().named("unchanged") == ["a"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "value",
    [
        None, 7, [], [{}], [1, 2], [[], []], [{"a": 1}, {}], [{"a": [1, 2, 3, 4, 5, 6]}, {}], [{"a": ["x"] * 6}, {}],
        [{"a": ["", "", [1], "", [1, 2, 3, 4], ""]}, {}], [{"a": ["", "", [["x"]], "", [1, 2, 3, 4], ""]}, {}], [{7: 8}, {}],
        [{}, [1]], [{}, {"a": "key"}], [{}, {"a": ["key"]}],
        [{"a": ["", "", [], "", [1, 2, 3, 4], "", None, "", [1]]}, {}],
        [{"a": ["", "", [], "", [1, 2, 3, 4], "", None, "", [["x", [1, 2]]]]}, {}],
    ],
)  # fmt: skip
def test_state_of_another_shape(bench: Workbench, value: object) -> None:
    """A state that is whole, and of another shape, is no state."""
    assert write_state(str(bench.folder / ".ingot/state"), "workspace 4", value, user_key())
    assert asked_for(bench.build()) == ["a"]


def test_state_of_another_project(bench: Workbench, tmp_path: Path) -> None:
    """The memory of another project, copied: looked at again. This project's own after a move:
    nothing has changed."""
    other = Workbench(tmp_path / "other", bench.cache)
    other.project({"a": chain([4, 9, 4])})
    other.build()
    shutil.rmtree(bench.folder / ".ingot")
    shutil.copytree(other.folder / ".ingot", bench.folder / ".ingot")
    first = bench.bundle("a")
    assert asked_for(bench.build()) == ["a"]
    assert bench.bundle("a") == first
    moved = Workbench(tmp_path / "moved", bench.cache)
    bench.folder.rename(moved.folder)
    assert moved.build().named("unchanged") == ["a"]
    assert moved.bundle("a") == first


@pytest.mark.broad
def test_forged_digests_need_the_key_or_rehash(bench: Workbench) -> None:
    """A source whose digest is forged is read, unless the user's key seals the forgery; with
    ``--rehash`` it is read then, too."""
    memory = bench.cache / "v1" / "file_digests"
    path = bench.folder / "a.onnx"
    before = path.read_bytes()
    old = read_workspace(str(bench.folder), user_key()).bundles["a"].sources[0][1]
    bench.edit("a", new_weight)
    assert len(path.read_bytes()) == len(before)
    stamp = stamp_of(str(path))
    assert stamp is not None
    write_state(str(memory), "file digests 1", {str(path): (*stamp, old)}, b"another user's key")
    assert bench.build(dry_run=True).named("would-build") == ["a"]
    write_state(str(memory), "file digests 1", {str(path): (*stamp, old)}, user_key())
    assert bench.build().named("unchanged") == ["a"]
    assert bench.build(rehash=True).named("built") == ["a"]
    assert bench.build().named("unchanged") == ["a"]


def test_forged_times(bench: Workbench) -> None:
    """A source of equal size with its old time: the time of the change, which nobody sets,
    tells."""
    path = bench.folder / "a.onnx"
    before = path.stat()
    bench.edit("a", new_weight)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert bench.build().named("built") == ["a"]


def test_clock_that_goes_backwards(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources from the future are never old enough for the path without looking."""
    monkeypatch.chdir(bench.folder)
    monkeypatch.setattr(unchanged, "SETTLED_NS", 0)
    monkeypatch.setattr(sys, "argv", ["ingot", "build", "-j1", "-q"])
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() - 3600 * 10**9)
    assert main(sys.argv[1:]) == 0
    assert not is_no_op(sys.argv[2:])
    monkeypatch.setattr(time, "time_ns", now)
    assert main(sys.argv[1:]) == 0
    assert is_no_op(sys.argv[2:])


def test_memory_that_cannot_be_written(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the folder's place: every build looks at everything, and works."""
    shutil.rmtree(bench.folder / ".ingot")
    bench.write(".ingot", "mine")
    monkeypatch.chdir(bench.folder)
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["ingot", "build", "-j1", "-q"])
        assert main(sys.argv[1:]) == 0
        assert not is_no_op(sys.argv[2:])
    assert (bench.folder / ".ingot").read_text() == "mine"


def test_folder_with_a_newline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that no line can hold is built, and looked at every time."""
    bench = Workbench(tmp_path / "a\nfolder \u00e4", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4])})
    monkeypatch.chdir(bench.folder)
    monkeypatch.setattr(unchanged, "SETTLED_NS", 0)
    monkeypatch.setattr(sys, "argv", ["ingot", "build", "-j1", "-q"])
    assert main(sys.argv[1:]) == 0
    assert not is_no_op(sys.argv[2:])
    assert bench.build().named("unchanged") == ["a"]


def test_state_survives_its_own_file(bench: Workbench) -> None:
    """What is written is what is read."""
    state = read_workspace(str(bench.folder), user_key())
    write_workspace(str(bench.folder), state, user_key())
    assert read_workspace(str(bench.folder), user_key()) == state
    assert load_project(str(bench.folder)).folder == str(bench.folder)


# -- processes -------------------------------------------------------------------------------------


@contextmanager
def building(bench: Workbench, *texts: str) -> Generator[subprocess.Popen[str]]:
    """A build as a group of processes; all of it is gone in the end."""
    line = [sys.executable, "-m", "ingot", "build", "-j2", *texts, "--cache", str(bench.cache)]
    with subprocess.Popen(
        line,
        cwd=bench.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def large(bench: Workbench) -> None:
    """Write models that take some seconds."""
    bench.project(
        {
            name: chain([5 + index * 40 + step for step in range(20)])
            for index, name in enumerate("abc")
        }
    )


def leftovers(bench: Workbench) -> list[str]:
    """Files that are half written."""
    return [
        str(path)
        for path in (*bench.folder.rglob("*"), *bench.cache.rglob("*"))
        if path.name.endswith(".part")
    ]


def check(bench: Workbench, tmp_path: Path, expected: dict[str, bytes]) -> None:
    """Every bundle is whole or not there; the next build ends right."""
    for path in (bench.folder / "dist").glob("*.ingot"):
        assert path.read_bytes() == expected[path.stem]
    ran(bench.build())
    assert {name: bench.bundle(name) for name in expected} == expected
    assert tmp_path.is_dir()


@pytest.mark.broad
def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C in the middle: said, exit code 130, no process and no half-written file is left, the
    next build ends right."""
    reference = Workbench(tmp_path / "reference", tmp_path / "reference cache")
    large(reference)
    reference.build()
    expected = {name: reference.bundle(name) for name in "abc"}
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    large(bench)
    with building(bench) as process:
        assert process.stderr
        while "codegen" not in process.stderr.readline():
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 130
        assert errors.splitlines()[-1] == "interrupted"
        assert "Traceback" not in errors
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    assert leftovers(bench) == []
    before = len(list((bench.cache / "v1").rglob("*")))
    assert before > 10  # what was done is kept
    check(bench, tmp_path, expected)


@pytest.mark.broad
def test_two_builds_at_once(tmp_path: Path) -> None:
    """Two commands in one folder over one empty cache: both end well, with the same bundles."""
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    bench.project(
        {name: chain([4, 8 + index, 4]) for index, name in enumerate("ab")}, targets=[TARGET]
    )
    with building(bench) as first, building(bench) as second:
        results = [process.communicate(timeout=300) for process in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0), results
    assert leftovers(bench) == []
    report = bench.build()
    assert (report.named("built", "unchanged"), ran(report)) == (["a", "b"], {})


@pytest.mark.slow
def test_kill_of_everything(tmp_path: Path) -> None:
    """kill -9 of all processes at random points: each next build ends right."""
    reference = Workbench(tmp_path / "reference", tmp_path / "reference cache")
    large(reference)
    reference.build()
    expected = {name: reference.bundle(name) for name in "abc"}
    chance = random.Random(SEED)
    for number in range(KILL_COUNT):
        bench = Workbench(tmp_path / "project", tmp_path / f"cache {number // 8}")
        large(bench)
        with building(bench) as process:
            time.sleep(chance.uniform(0.05, 6.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=300)
        if number % 8 == 7:
            check(bench, tmp_path, expected)
            shutil.rmtree(bench.folder)


# -- copies, locks, outputs ------------------------------------------------------------------------


def test_a_copy_of_a_project_has_nothing_to_do_with_the_first(
    bench: Workbench, tmp_path: Path
) -> None:
    """What is built or cleaned in the copy leaves the first one alone; the copy knows its own
    files."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    before = bench.bundle("a")
    shutil.copytree(bench.folder, tmp_path / "copy")
    line = [sys.executable, "-m", "ingot", "clean", "-C", str(tmp_path / "copy")]
    subprocess.run(line, check=True, capture_output=True)
    assert bench.bundle("a") == before
    (tmp_path / "link").symlink_to(bench.folder)
    assert ran(Workbench(tmp_path / "link", bench.cache).build()) == {}
    assert Workbench(tmp_path / "link", bench.cache).build().named("unchanged") == ["a"]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("content", ["[]", "{}", ""])
def test_a_lock_that_somebody_changed_is_written_anew(bench: Workbench, content: str) -> None:
    """The lock file is an output like the bundle: an old or damaged one does not stay."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    path = bench.folder / "dist" / "a.lock.json"
    right = path.read_bytes()
    path.write_text(content)
    report = bench.build()
    assert (asked_for(report), ran(report)) == (["a"], {})
    assert path.read_bytes() == right
    assert bench.build().named("unchanged") == ["a"]


def test_files_that_are_no_bundles_are_not_written_over(bench: Workbench) -> None:
    """The project file, what the workspace remembers, and any file of the user's are safe."""
    bench.project({"a": chain([4, 8, 4])})
    bench.write("notes.txt", "mine")
    for output in ("ingot.toml", "./ingot.toml", ".ingot/state"):
        with pytest.raises(UserError, match="the project's own"):
            bench.build(config=[f"bundle.a.output={output}"])
    report = bench.build(config=["bundle.a.output=notes.txt"])
    assert "no bundle" in str(report.results[0].error)
    assert (bench.folder / "notes.txt").read_text() == "mine"
    (bench.folder / "notes.txt").write_bytes(b"")
    assert bench.build(config=["bundle.a.output=notes.txt"]).named("built") == ["a"]
