"""The build that has nothing to do: found without imports, and never where anything has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.build_harness import TARGET, TEST, Workbench, age, chain, with_external
from tests.json_schemas import checked

from ingot_build_rules.engine.cache import unchanged as engine
from ingot_build_rules.making.rules.registry import RULES
from ingot_build_rules.tools.cli import main as command
from ingot_build_rules.tools.cli.building.no_op import is_no_op

HEAVY = {
    "numpy", "llvmlite", "onnx", "rich", "diskcache", "grpc", "tomllib", "argparse", "dataclasses", "typing", "pathlib",
    "hashlib", "json", "subprocess", "msgpack", "sqlite3",
}  # fmt: skip
TEXTS = ("-j1", "-q")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A built project with external data, a glob and a test, in the current folder; its files count
    as old enough."""
    monkeypatch.setattr(engine, "SETTLED_NS", 0)
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project(
        {"a": with_external(chain([4, 8, 4]), bench.folder, "parts/a.bin")},
        f'{TEST}[model.g]\nsource = "g/**/*.onnx"\n[bundle.g]\nmodel = "g"\ntargets = ["{TARGET}"]\n',
    )
    bench.write("g/one.onnx", chain([4, 8, 4], seed=2).SerializeToString())
    bench.write("g/below/two.onnx", chain([4, 8, 4], seed=3).SerializeToString())
    bench.data(chain([4, 8, 4]))
    monkeypatch.chdir(bench.folder)
    build(monkeypatch)
    return bench


def build(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["ingot", "build", *TEXTS, *texts])
    assert command.main(sys.argv[1:]) == 0


def no_op(*texts: str) -> bool:
    """Whether the command would find that it has nothing to do."""
    return is_no_op([*TEXTS, *texts])


def same_size_and_times(path: Path) -> None:
    """Change a byte and hide it."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (before.st_size, before.st_mtime_ns, before.st_ino) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ino,
    )


def replaced(path: Path) -> None:
    """Put another file of the same bytes and times in its place."""
    other = path.with_suffix(".new")
    shutil.copy2(path, other)
    other.replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a source": lambda folder: same_size_and_times(folder / "a.onnx"),
    "a source's time": lambda folder: os.utime(folder / "a.onnx"),
    "a source's file": lambda folder: replaced(folder / "a.onnx"),
    "a source goes": lambda folder: (folder / "g/one.onnx").unlink(),
    "external data": lambda folder: same_size_and_times(folder / "parts/a.bin"),
    "a test's input": lambda folder: same_size_and_times(folder / "x.npz"),
    "a test's output": lambda folder: same_size_and_times(folder / "y.npz"),
    "the project file": lambda folder: same_size_and_times(folder / "ingot.toml"),
    "a bundle goes": lambda folder: (folder / "dist/a.ingot").unlink(),
    "a bundle's byte": lambda folder: same_size_and_times(folder / "dist/a.ingot"),
    "a lock file goes": lambda folder: (folder / "dist/a.lock.json").unlink(),
    "a new file": lambda folder: shutil.copy(folder / "g/one.onnx", folder / "g/three.onnx"),
    "a new file below": lambda folder: shutil.copy(
        folder / "g/one.onnx", folder / "g/below/three.onnx"
    ),
    "a new folder": lambda folder: (folder / "g/new").mkdir(),
    "the memory goes": lambda folder: (folder / ".ingot/unchanged").unlink(),
    "the memory's last byte": lambda folder: same_size_and_times(folder / ".ingot/unchanged"),
}


def test_nothing_changed(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said in one line; as JSON with every rule at 0; whatever says how to build, and not what,
    changes nothing."""
    assert bench.folder.is_dir()
    assert no_op()
    assert capsys.readouterr().out == ""
    assert is_no_op(["-j", "3", "-k", "--expect-cached"])
    assert capsys.readouterr().out == "4 unchanged\n"
    assert is_no_op(["--json", "--jobs=2"])
    report = checked("build", capsys.readouterr().out)
    assert report["rules"] == {rule.name: {"ran": 0, "hit": 0} for rule in RULES}
    assert report["built"] == ["a", "g/below/two", "g/one", "test.a"]
    assert command.main(["build", "-n", "-j1"]) == 0
    assert capsys.readouterr().out.startswith("4 unchanged; 0 actions ran")
    assert no_op(), "a dry run has changed what the last build left"
    capsys.readouterr()
    assert {item["status"] for item in report["targets"].values()} == {"unchanged"}
    monkeypatch.setattr(sys, "argv", ["ingot", "build", "--json", "--rehash", "-j1"])
    assert command.main(sys.argv[1:]) == 0
    full = checked("build", capsys.readouterr().out)
    assert full.keys() == report.keys()
    assert full["targets"] == report["targets"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("change", CHANGES)
def test_change_is_seen(bench: Workbench, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Each kind of change, also one that hides, is looked at closer, once."""
    assert no_op()
    CHANGES[change](bench.folder)
    assert not no_op()
    if change in ("a source's time", "a bundle's byte", "a lock file goes", "a new file below"):
        build(monkeypatch)
        assert no_op()
        assert (bench.folder / "dist/a.lock.json").exists()


OTHER_TEXTS = (
    ("-n",), ("--dry-run",), ("--explain",), ("--rehash",), ("--lint",), ("--frozen",), ("--help",), ("-h",), ("--debug",),
    ("--trace", "t.json"), ("--trace=t.json",), ("--events=-",), ("--depfile", "d"), ("--check-hits", "1"), ("a",),
    ("--config", "bundle.a.planner=hill_climb"), ("-C", ".."), ("--cache", "another"),
)  # fmt: skip


def test_other_words_are_another_build(bench: Workbench) -> None:
    """What asks for something else, or for a closer look, never ends early."""
    assert bench.folder.is_dir()
    assert [texts for texts in OTHER_TEXTS if no_op(*texts)] == []
    assert no_op()


def test_folder_and_words_are_part_of_what_was_built(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A build of one bundle from another folder is remembered as that."""
    monkeypatch.chdir(tmp_path)
    build(monkeypatch, "-C", str(bench.folder), "a")
    assert no_op("-C", str(bench.folder), "a")
    assert not no_op("-C", str(bench.folder))
    assert not no_op(f"-C{bench.folder}", "g")
    monkeypatch.chdir(bench.folder / "g")
    assert not no_op("a")


def test_nearer_project_is_another_one(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project file that comes to a folder between."""
    monkeypatch.chdir(bench.folder / "g")
    build(monkeypatch)
    assert no_op()
    (bench.folder / "g/ingot.toml").write_text("")
    assert not no_op()


def test_failure_is_not_remembered(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that fails, a dry run, and one in which a test fails leave nothing that could be
    taken for success."""
    bench.write("a.onnx", b"no model")
    for texts in (("-k",), ("-n",)):
        monkeypatch.setattr(sys, "argv", ["ingot", "build", *TEXTS, *texts])
        assert command.main(sys.argv[1:]) != 0 or texts == ("-n",)
        assert not no_op(*texts)
        assert not no_op()


def test_young_sources_are_never_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that was written less than two seconds before the build is looked at again; after
    that it is old enough."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4])})
    monkeypatch.chdir(bench.folder)
    build(monkeypatch)
    assert not no_op()
    age(bench.folder / "a.onnx", bench.folder / "ingot.toml")
    build(monkeypatch)
    assert no_op()


def test_source_that_changes_while_it_is_built(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was built is not what is there: the next build builds it."""
    first, replace = bench.bundle("a"), os.replace

    def replace_and_edit(old: str, new: str) -> None:
        replace(old, new)
        if new.endswith("a.ingot"):
            bench.project({"a": chain([4, 8, 4], seed=9)})

    bench.project({"a": chain([4, 8, 4], seed=8)})
    monkeypatch.setattr(os, "replace", replace_and_edit)
    build(monkeypatch)
    second = bench.bundle("a")
    monkeypatch.setattr(os, "replace", replace)
    assert not no_op()
    build(monkeypatch)
    assert len({first, second, bench.bundle("a")}) == 3
    assert no_op()


def test_imports_of_a_no_op(tmp_path: Path) -> None:
    """The command as a process, on an unchanged project, imports nothing that takes time."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4])})
    age(bench.folder / "a.onnx", bench.folder / "ingot.toml")
    line = [sys.executable, "-X", "importtime", "-m", "ingot", "build", "-j1"]
    subprocess.run(line, cwd=bench.folder, capture_output=True, check=True)
    done = subprocess.run(line, cwd=bench.folder, capture_output=True, text=True, check=True)
    assert done.stdout == "1 unchanged\n"
    imported = {text.rpartition("|")[2].strip() for text in done.stderr.splitlines()}
    assert "ingot_build_rules.tools.cli.building.no_op" in imported
    assert not {name for name in imported if name.partition(".")[0] in HEAVY}
    tools = "ingot_build_rules.tools"
    assert {name for name in imported if name.startswith("ingot")} == {
        "ingot", "ingot_build_rules", "ingot_build_rules.engine", "ingot_build_rules.engine.cache",
        "ingot_build_rules.engine.cache.unchanged", tools, f"{tools}.cli", f"{tools}.cli.building",
        f"{tools}.cli.building.no_op", f"{tools}.cli.entry", f"{tools}.workspace", f"{tools}.workspace.user_key",
    }  # fmt: skip
