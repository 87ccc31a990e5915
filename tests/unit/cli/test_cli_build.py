"""The verbs of a project: every flag of ``build``, ``why``, ``log``, ``query``, ``clean``,
``watch``; exit codes, errors in four parts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx import helper
from tests.harness.build_harness import (
    TARGET,
    TEST,
    Workbench,
    chain,
    make_cache,
    model_of,
    new_weight,
    with_external,
)
from tests.json_schemas import checked
from tests.trace_format import checked_trace

from ingot_build_rules.engine.cache.file_digests import file_digest
from ingot_build_rules.engine.events.event_lines import read_events
from ingot_build_rules.engine.events.events import BuildFinished, BuildStarted
from ingot_build_rules.making.rules.registry import RULES
from ingot_build_rules.making.stages.own_code import tool_path
from ingot_build_rules.tools.cli.main import main

PARTS = re.compile(r"error: .+\n  where: .+\n  why: .+\n  do: .+", re.DOTALL)


@dataclass
class Command:
    """Runs the command in this process, in the project's folder."""

    bench: Workbench
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    errors: str = ""

    def __call__(self, *texts: str, code: int = 0) -> str:
        """Return what it printed; an exit code that is not 0 goes with an error in four parts."""
        self.monkeypatch.setattr(sys, "argv", ["ingot", *texts])
        found = main(list(texts))
        out, self.errors = self.capsys.readouterr()
        assert found == code, self.errors
        assert "Traceback" not in out + self.errors
        assert bool(PARTS.search(self.errors)) == (code != 0), self.errors
        return out

    def build(self, *texts: str, code: int = 0) -> str:
        """Build in one process."""
        return self("build", "-j1", *texts, code=code)

    def json(self, *texts: str, code: int = 0) -> dict[str, Any]:
        """Return the one line of JSON that a verb prints."""
        return checked(texts[0], self(*texts, "--json", code=code))


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Two models, a test of the first, in the current folder; not built."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4]), "b": chain([4, 8, 4], seed=2)}, TEST)
    bench.data(chain([4, 8, 4]))
    monkeypatch.chdir(bench.folder)
    return Command(bench, capsys, monkeypatch)


def broken(model: onnx.ModelProto) -> None:
    """Make a tensor larger than its bytes."""
    model.graph.initializer[0].dims[0] += 1


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of each file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- build -----------------------------------------------------------------------------------------


def test_build_and_summary(run: Command) -> None:
    """What was built, where, how large; then that there is nothing to do."""
    lines = run.build().splitlines()
    assert re.fullmatch(r"built dist/a\.ingot, [\d.]+ [kM]B, digest [0-9a-f]{16}", lines[0])
    assert re.fullmatch(r"2 built, 1 passed; \d+ actions ran, \d+ from the cache, .+", lines[-1])
    assert run.build("--rehash").startswith("3 unchanged; 0 actions ran, ")


def test_json_is_one_line(run: Command) -> None:
    """Every rule with ran and hit; every target with how, path and digest."""
    report = run.json("build", "-j1")
    assert set(report["rules"]) == {rule.name for rule in RULES}
    assert all(set(count) == {"ran", "hit"} for count in report["rules"].values())
    assert {name: item["status"] for name, item in report["targets"].items()} == {
        "a": "built", "b": "built", "test.a": "passed",
    }  # fmt: skip
    assert report["targets"]["a"]["output"] == str(run.bench.folder / "dist/a.ingot")
    assert len(report["targets"]["a"]["digest"]) == 64
    assert isinstance(report["seconds"], float)


def test_words(run: Command) -> None:
    """A bundle, its output, a test, a test beside its bundle; and a word that means nothing."""
    assert run.json("build", "-j1", "b")["built"] == ["b"]
    assert run.json("build", "-j1", "dist/b.ingot")["built"] == ["b"]
    assert run.json("build", "-j1", "test.a")["built"] == ["a", "test.a"]
    run.build("bb", code=1)
    assert "do: did you mean 'b'" in run.errors


def test_folder(run: Command, tmp_path: Path) -> None:
    """``-C`` names the project's folder, or one below it; elsewhere there is none."""
    (run.bench.folder / "below").mkdir()
    run.monkeypatch.chdir(tmp_path)
    assert run.json("build", "-j1", "-C", "project")["built"] == ["a", "b", "test.a"]
    assert run.json("build", "-j1", "--folder=project/below")["built"] == ["a", "b", "test.a"]
    run.build(code=1)
    assert "no project file" in run.errors
    run.build("-C", "nowhere", code=1)
    assert "where: nowhere" in run.errors


def test_jobs(run: Command) -> None:
    """Several processes give what one gives; a number that is none is refused."""
    run("build", "-j", "2", "-q", "a")
    first = run.bench.bundle("a")
    (run.bench.folder / "dist/a.ingot").unlink()
    run.build("a")
    assert run.bench.bundle("a") == first
    run("build", "-j0", code=1)


@pytest.mark.broad
def test_dry_run_writes_nothing(run: Command, tmp_path: Path) -> None:
    """``-n`` says what would run, for every bundle, and changes neither project nor cache."""
    cache = tmp_path / "cache"
    before = files(run.bench.folder)
    out = run.build("-n", "--cache", str(cache))
    assert "would run import_model, and what depends on it" in out
    assert "would build dist/a.ingot" in out
    assert files(run.bench.folder) == before
    run.build("--cache", str(cache))
    before = files(run.bench.folder)
    assert run.build("-n", "--cache", str(cache)).startswith("3 unchanged; 0 actions ran")
    assert files(run.bench.folder) == before
    run.bench.data(chain([4, 8, 4]), shift=1e-6)
    assert run.build("-n", "--cache", str(cache)).splitlines()[0] == "would run test.a"


def test_keep_going_builds_all_that_can_be_built(run: Command) -> None:
    """One broken model of three: with ``-k`` the other two are built, and the summary lists both;
    its test is skipped."""
    run.bench.edit("a", broken)
    report = run.json("build", "-j1", "-k", code=1)
    assert (report["built"], report["failed"], report["skipped"]) == (["b"], ["a"], ["test.a"])
    assert run.errors.count("error: ") == 1
    assert "where: bundle 'a', initializer 'w0'" in run.errors
    assert report["errors"]["a"]["what"] == "a tensor has too few bytes"
    assert report["error"] == report["errors"]["a"]
    out = run.build("-k", code=1)
    assert "failed dist/a.ingot\n" in out
    assert re.search(r"1 unchanged, 1 failed, 1 skipped; 0 actions ran", out)
    run.bench.project({"a": chain([4, 8, 4]), "b": chain([4, 8, 4], seed=2)}, TEST)
    assert run.json("build", "-j1")["failed"] == []


def test_a_model_of_another_tool(run: Command) -> None:
    """A source that is no model is told by what it is, as by ``ingot compile``."""
    shutil.copy(run.bench.folder / "x.npz", run.bench.folder / "a.onnx")
    run.build("a", code=1)
    assert "the file is not an ONNX model\n  where: bundle 'a', " in run.errors
    assert "why: it is arrays of numpy" in run.errors


def test_without_keep_going_the_rest_is_skipped(run: Command, tmp_path: Path) -> None:
    """After a failure nothing new begins."""
    run.bench.edit("a", broken)
    report = run.json("build", "-j1", "--cache", str(tmp_path / "cache"), code=1)
    assert report["failed"] == ["a"]
    assert "b" in report["skipped"]


def test_exit_codes(run: Command) -> None:
    """1 the user's mistake, 3 what is not supported, 4 a test that fails."""
    run.bench.data(chain([4, 8, 4]), shift=1.0)
    run.build(code=4)
    assert "output 'y' of a test differs" in run.errors
    unknown = helper.make_node("Unknowable", ["x"], ["y"], name="/u")
    run.bench.project({"u": model_of([unknown], [1], [1], [])})
    run.build(code=3)
    assert "/u" in run.errors
    run.bench.project({"a": chain([4, 8, 4])})
    shutil.rmtree(run.bench.folder / "dist")
    run.bench.write("dist", b"a file")
    run.build(code=1)
    assert str(run.bench.folder / "dist") in run.errors
    run.bench.write("ingot.toml", "[model.a\n")
    run.build(code=1)
    assert "ingot.toml:1" in run.errors


def test_explain(run: Command) -> None:
    """Why everything that runs does, below its bundle; in a cache of its own, so that it does
    run."""
    run.monkeypatch.setenv("INGOT_CACHE", str(make_cache(run.bench.folder / "cache")))
    run.build()
    run.bench.edit("a", new_weight)
    lines = run.build("--explain").splitlines()
    assert lines[0] == "a:"
    assert re.match(r"  import_model: source changed \w{12} -> \w{12}, file .*/a\.onnx", lines[1])
    assert "b:" not in lines


def test_trace_and_events(run: Command) -> None:
    """A trace that viewers read; every event as a line of JSON in a file or on standard output."""
    started = time.perf_counter()
    run.build("--trace", "t.json", "--events", "e.txt", "b")
    checked("trace", Path("t.json").read_text())
    entries = checked_trace(Path("t.json").read_text())
    (built,) = [entry for entry in entries if entry["name"] == "built: b"]
    assert started <= built["ts"] / 1e6 <= time.perf_counter()  # the axis of traces of runs
    assert built["pid"] == os.getpid()
    lines = Path("e.txt").read_text().splitlines()
    assert all(checked("event", line) for line in lines)
    events = list(read_events(lines))
    assert isinstance(events[0], BuildStarted)
    assert isinstance(events[-1], BuildFinished)
    assert events[-1].built == ("b",)
    found = list(read_events(run.build("--events", "-", "-q", "a").splitlines()))
    assert isinstance(found[-1], BuildFinished)
    run.build("--events", "-", "--json", code=1)
    run.build("--events", "no/such/folder", code=1)
    run.build("--trace", "no/such/folder", code=1)


def test_depfile(run: Command) -> None:
    """The sources of one bundle; of several it is refused before anything is built."""
    run.bench.project(
        {
            "c": with_external(chain([4, 8, 4], seed=3), run.bench.folder, "c.bin"),
            "b": chain([4, 8, 4], seed=2),
        }
    )
    run.build("--depfile", "c.d", "c")
    target, _, sources = Path("c.d").read_text().split("\n\n")[0].replace("\\\n", "").partition(":")
    assert (target, sources.split()) == ("dist/c.ingot", ["c.bin", "c.onnx", "ingot.toml"])
    shutil.rmtree("dist")
    run.build("--depfile", "x.d", code=1)
    assert not Path("dist").exists()


@pytest.mark.broad
def test_expect_cached(run: Command, tmp_path: Path) -> None:
    """Anything that would have to run is a failed verification that names it; nothing runs, nothing
    is written."""
    run.build("--expect-cached", "--cache", str(tmp_path / "empty"), code=4)
    assert "would run import_model" in run.errors
    assert not Path("dist/a.ingot").exists()
    report = run.json("build", "-j1", "--expect-cached", "--cache", str(tmp_path / "empty"), code=4)
    assert report["error"]["what"] == "not everything is in the cache"
    assert any("import_model" in item for item in report["would_run"])
    run.build()
    shutil.rmtree("dist")
    run.build("--expect-cached")
    assert Path("dist/a.ingot").exists()


def test_frozen(run: Command) -> None:
    """With ``--frozen`` a bundle is what its lock file says, or it is not written; the lock file is
    never written."""
    run.build("--frozen", code=4)
    assert "a.lock.json" in run.errors
    assert not Path("dist/a.ingot").exists()
    run.build()
    before = files(run.bench.folder / "dist")
    assert run.json("build", "-j1", "--frozen")["built"] == ["a", "b", "test.a"]
    os.utime("a.onnx")
    assert run.json("build", "-j1", "--frozen")["built"] == ["a", "b", "test.a"]
    run.bench.edit("a", new_weight)
    report = run.json("build", "-j1", "-k", "--frozen", code=4)
    assert (report["failed"], report["built"]) == (["a"], ["b"])
    assert "a source is not the one that is locked" in run.errors
    run.build("-k", "--frozen", "--config", "bundle.b.planner=hill_climb", code=4)
    assert "options are not those that are locked" in run.errors
    assert files(run.bench.folder / "dist") == before


def test_check_hits(run: Command) -> None:
    """A share of the hits runs again and is compared, of bundles that are up to date, too; what is
    no share is refused."""
    run.build("b")
    stamp = Path("dist/b.ingot").stat().st_mtime_ns
    report = run.json("build", "-j1", "--check-hits", "100%", "b")
    assert {count["hit"] for count in report["rules"].values()} == {0}
    assert report["rules"]["bundle"]["ran"] == 1
    assert report["explanations"] == {}
    assert {item["status"] for item in run.json("log", "b")["targets"]["b"]["actions"]} == {
        "checked"
    }
    assert Path("dist/b.ingot").stat().st_mtime_ns == stamp
    assert run.build("--check-hits", "1", "-n", "b").startswith("1 unchanged")
    assert run.build("--check-hits", "1", "--expect-cached", "b").startswith("1 unchanged")
    found = re.search(
        r"^checked: (\d+) of (\d+) cached .*same results$",
        run.build("--check-hits", "1", "b"),
        re.MULTILINE,
    )
    assert found
    assert found[1] == found[2] != "0"
    for text in ("2", "-1", "some", "101%"):
        run.build("--check-hits", text, code=1)


@pytest.mark.broad
def test_read_only(run: Command, tmp_path: Path) -> None:
    """Results come from the cache, none is left there; a cache that is not there is an empty
    one."""
    cache = make_cache(tmp_path / "cache")
    run.build("b", "--cache", str(cache))
    before = files(cache)
    run.bench.edit("b", new_weight)
    report = run.json("build", "-j1", "b", "--cache", str(cache), "--read-only")
    assert report["rules"]["codegen"]["ran"] == 0
    assert report["rules"]["import_model"]["ran"] == 1
    after = {
        name: file for name, file in files(cache).items() if not name.endswith(("-shm", "-wal"))
    }
    assert {name: content for name, (_, content) in after.items()} == {
        name: item for name, (_, item) in before.items()
    }
    run.build("b", "--rehash", "--cache", str(tmp_path / "none"), "--read-only")
    assert not (tmp_path / "none").exists()


def test_lint_and_quiet(run: Command) -> None:
    """Our own rules read what they declare; ``-q`` says nothing."""
    assert run.build("--lint", "-q", "b") == ""
    assert run.errors == ""
    lines = run.build("--lint", "b").splitlines()
    assert re.fullmatch(r"lint: [1-9]\d* actions read only what their keys know", lines[0])


def test_config(run: Command) -> None:
    """One value of the project for one command; a path that is none is the user's mistake."""
    run.build("--config", "bundle.b.output=out/x.ingot", "b")
    assert Path("out/x.ingot").exists()
    run.build("--config", "bundle.b.targets=x86-64-v9", code=1)
    run.build("--config", "bundle.nobody.planner=best", code=1)


def test_unknown_option(run: Command) -> None:
    """A suggestion for what was probably meant."""
    run.build("--dryrun", code=1)
    assert "--dry-run" in run.errors


# -- why, log, query -------------------------------------------------------------------------------


def test_why(run: Command) -> None:
    """What the next build would do and what has changed; what the last one did and why; in a cache
    of its own, so that it does run."""
    run.monkeypatch.setenv("INGOT_CACHE", str(make_cache(run.bench.folder / "cache")))
    assert run("why", "b") == "b: never built here\n"
    run.build()
    assert run("why", "b").startswith("b: up to date\n")
    run.bench.edit("b", new_weight)
    lines = run("why", "dist/b.ingot").splitlines()
    assert lines[0] == "b: would be built again"
    assert re.fullmatch(r"  file b\.onnx changed \w{12} -> \w{12}", lines[1])
    run.build()
    lines = run("why", "b").splitlines()
    assert lines[:2] == ["b: up to date", "the last build that ran something:"]
    assert lines[2].startswith("  import_model: source changed ")
    Path("dist/b.ingot").unlink()
    assert "dist/b.ingot is not as the last build left it" in run("why", "b")
    assert 'option planner changed "best" -> "hill_climb"' in run(
        "why", "a", "--config", "bundle.a.planner=hill_climb"
    )
    assert "asks for another output" in run("why", "a", "--config", "bundle.a.output=x.ingot")
    found = run.json("why", "a", "b")["targets"]
    assert run.json("why")["targets"].keys() >= found.keys()  # without names: all
    assert found["a"] == {"pending": [], "failed": [], "last": found["a"]["last"], "built": True}
    run("why", "nobody", code=1)


def test_log(run: Command) -> None:
    """Each action: how it ended, rule, label, key."""
    assert run("log", "b") == "b: never built here\n"
    run.build("b")
    lines = run("log", "b").splitlines()
    assert lines[0] == "b:"
    assert all(re.match(r"  (ran|hit) +[\d.]+ \S+  \w+ .*\w{12}$", line) for line in lines[1:])
    assert "b:" in run("log").splitlines()  # without names: all
    found = run.json("log", "b")["targets"]["b"]["actions"]
    assert {item["rule"] for item in found} >= {"import_model", "codegen", "link", "bundle"}
    assert {"rule", "label", "status", "seconds", "key", "messages", "ingredients"} == set(found[0])


def test_log_has_the_users_names_of_sizes(run: Command) -> None:
    """A version for special sizes is told by them."""

    def open_rows(model: onnx.ModelProto) -> None:
        for tensor in (*model.graph.input, *model.graph.output):
            tensor.type.tensor_type.shape.dim[0].dim_param = "rows"

    run.bench.edit("b", open_rows)
    run.build("b", "--config", "model.b.shape.x=3x?")
    told = run("log", "b")
    assert "optimize rows = 3 " in told
    assert "place rows = 3 " in told


@pytest.mark.broad
def test_why_a_bundle_is_in_the_cache(run: Command) -> None:
    """The digest that a build prints leads to the record that made the bundle."""
    run.build("a", "b")
    digest = run.json("build", "--rehash")["targets"]["b"]["digest"]
    (made,) = [
        item for item in run.json("log", "b")["targets"]["b"]["actions"] if item["rule"] == "bundle"
    ]
    found = checked("cache-why", run("cache", "why", digest[:16], "--json"))
    assert (found["digest"], found["made_by"]) == (digest, [made["key"]])
    assert str(run.bench.folder / "dist/b.ingot") in found["kept_by"]
    assert f"bundle  {made['key']}" in run("cache", "why", digest)


def test_why_reads_of_tools_what_the_cache_does_not_know(run: Command) -> None:
    """The compiler is a large file: its digest is that of the last build."""
    run.build("b")
    read: list[str] = []

    def noted(path: str) -> str:
        read.append(path)
        return file_digest(path)

    run.monkeypatch.setattr("ingot_build_rules.engine.cache.file_digests.file_digest", noted)
    assert run("why", "b").startswith("b: up to date\n")
    assert tool_path("zig") not in read
    assert "b.onnx" in map(os.path.basename, read), "it is too young to be known"


def test_why_and_log_of_a_test(run: Command) -> None:
    """What it last ran on, what has changed since, how it failed."""
    run.monkeypatch.setenv("INGOT_CACHE", str(make_cache(run.bench.folder / "cache")))
    assert run("why", "test.a") == "test.a: never passed here\n"
    assert run("log", "test.a") == "test.a: never run here\n"
    run.build("a", "test.a")
    assert run("why", "test.a").startswith("test.a: up to date\n")
    assert re.fullmatch(r"test\.a:\n  ran +[\d.]+ \S+  run_test a  \w{12}\n", run("log", "test.a"))
    option = "test.a.tolerance=0.5"
    changed = "relative_tolerance changed 0.0001 -> 0.5"
    why = run("why", "test.a", "--config", option)
    assert why.startswith(f"test.a: would run again\n  {changed}\n")
    run.bench.edit("a", new_weight)
    assert "\n  bundle a would be built again\n" in run("why", "test.a")
    run.bench.project({"a": chain([4, 8, 4])}, TEST)
    run.bench.data(chain([4, 8, 4]), shift=1.0)
    assert "\n  file y.npz changed " in run("why", "test.a")
    run.build(code=4)
    why, log = run("why", "test.a"), run("log", "test.a")
    assert why.startswith("test.a: would run again\n  it did not pass\nthe last build failed:\n")
    for text in (why, log, run.errors or "\n  output 'y'"):
        assert "output 'y'" in text
    assert {
        item["status"] for item in run.json("log", "test.a")["targets"]["test.a"]["actions"]
    } == {"failed"}


@pytest.mark.broad
def test_why_and_log_tell_of_a_failure_until_it_is_over(run: Command) -> None:
    """A build that failed is the last one; what is mended, by an edit or by taking it back, is
    forgotten."""
    before = (run.bench.folder / "b.onnx").read_bytes()
    for first in (True, False):
        run.bench.edit("b", broken)
        run.build("b", code=1)
        (error,) = re.findall(r"^error: (.*)", run.errors, re.MULTILINE)
        why, log = run("why", "b").splitlines(), run("log", "b").splitlines()
        assert "the last build failed:" in why
        assert f"  {error}" in why
        assert first == (why[0] == "b: never built here")
        assert f"  {error}" in log
        assert log[1].startswith("  failed ")
        found = run.json("log", "b")["targets"]["b"]
        assert [item["status"] for item in found["actions"]] == ["failed"]
        assert found["failed"][0] == error
        assert run.json("why", "b")["targets"]["b"]["failed"][0] == error
        run.bench.write("b.onnx", before)
        run.build("b")
        assert "failed" not in run("why", "b") + run("log", "b")
    (run.bench.folder / "b.onnx").unlink()
    run.build("b", code=1)
    assert "  no such model file" in run("why", "b")


def test_what_was_only_skipped_has_not_failed(run: Command) -> None:
    """Another bundle's failure is not told of the one that had to wait."""
    run.bench.edit("a", broken)
    run.build("-j1", code=1)
    assert "the last build failed" in run("why", "a")
    assert "failed" not in run("why", "b")


def test_query(run: Command) -> None:
    """The graph as JSON whose form does not change, and as DOT whose edges lead from what is made
    to what needs it."""
    graph = run.json("query")
    assert set(graph) == {"version", "project", "bundles", "tests"}
    assert graph["version"] == 1
    assert set(graph["bundles"]) == {"a", "b"}
    assert graph["bundles"]["a"] == {
        "source": "a.onnx", "output": "dist/a.ingot", "options": graph["bundles"]["a"]["options"], "digest": None,
        "actions": None,
    }  # fmt: skip
    assert graph["tests"] == {
        "a": {"bundle": "a", "inputs": "x.npz", "outputs": "y.npz", "actions": None}
    }
    run.build()
    graph = run.json("query", "a", "--actions")
    actions = graph["bundles"]["a"]["actions"]
    assert all(
        set(item) == {"rule", "label", "key", "ingredients", "needs", "makes"} for item in actions
    )
    assert set(graph["bundles"]) == {"a"}
    (action,) = run.json("query", "test.a", "--actions")["tests"]["a"]["actions"]
    assert action["ingredients"]["bundle"]
    assert action["rule"] == "run_test"
    edge = re.compile(r'  "(?:[^"\\]|\\.)*" -> "(?:[^"\\]|\\.)*"(?: \[label="(?:[^"\\]|\\.)*"\])?;')
    dot = run("query", "--format", "dot", "--actions").splitlines()
    assert (dot[0], dot[-1]) == ("digraph ingot {", "}")
    edges = [line for line in dot if "->" in line]
    assert all(edge.fullmatch(line) for line in edges)
    assert '  "a.onnx" -> "dist/a.ingot" [label="a"];' in edges
    assert '  "dist/a.ingot" -> "test a";' in edges
    assert '  "y.npz" -> "test a";' in edges
    assert '  "a: import_model" -> "a: infer_types";' in edges


# -- clean -----------------------------------------------------------------------------------------


def test_clean_removes_what_builds_have_made(run: Command) -> None:
    """Bundles, memory and folders that are empty then; sources and lock files stay, and a second
    time there is nothing."""
    before = files(run.bench.folder)
    run.build()
    locks = {f"dist/{name}.lock.json" for name in "ab"}
    before |= {name: file for name, file in files(run.bench.folder).items() if name in locks}
    assert "would remove dist/a.ingot" in run("clean", "-n")
    assert Path("dist/a.ingot").exists()
    out = run("clean").splitlines()
    assert out == ["removed dist/a.ingot", "removed dist/b.ingot"]
    assert files(run.bench.folder) == before
    assert before.keys() >= locks
    assert not Path(".ingot").exists()
    assert run("clean") == "nothing to remove\n"
    run.build("--frozen")


def test_clean_knows_where_bundles_were_before(run: Command) -> None:
    """A bundle whose output changed leaves a file that ``clean`` removes, unless it is another
    bundle's by now; also one that is no longer in the project."""
    for output in ("x.ingot", "out/y.ingot"):
        run.build("b", "--config", f"bundle.b.output={output}")
    run.build("b")
    shutil.copy("b.onnx", "a.onnx")
    run.build("a", "--config", "bundle.a.output=x.ingot")
    assert Path("x.ingot").exists()
    out = run("clean", "b").splitlines()
    assert out == ["removed dist/b.ingot", "removed out/y.ingot"]
    assert os.listdir("out") == ["y.lock.json"]
    run.bench.project({"c": chain([4, 8, 4])})
    assert run("clean").splitlines() == ["removed x.ingot"]


def test_a_bundle_that_keeps_its_bytes_is_unchanged(run: Command) -> None:
    """Something was asked for again, or even ran, and the file is what it was: ``-n`` and the build
    say so, and its lock file has the new source."""
    run.build("b")
    lock = Path("dist/b.lock.json").read_text()
    run.bench.edit("b", lambda model: setattr(model, "doc_string", "another"))
    assert run.build("b").startswith("1 unchanged; 1 actions ran, ")
    assert Path("dist/b.lock.json").read_text() != lock
    run.build("--frozen", "b")
    shutil.copy("b.onnx", "other.onnx")
    option = "model.b.source=other.onnx"
    assert run.build("-n", "b", "--config", option).startswith("1 unchanged; 0 actions ran, ")
    assert run.build("b", "--config", option).startswith("1 unchanged; 0 actions ran, ")


def test_results_are_told_once(run: Command) -> None:
    """What became of each target on standard output; each error on standard error."""
    run.bench.edit("b", broken)
    out = run.build("-k", code=1)
    for name in ("dist/a.ingot", "test.a", "dist/b.ingot"):
        assert (out.count(name), run.errors.count(name)) == (1, 0), name
    assert run.errors.count("a tensor has too few bytes") == 1


def test_clean_leaves_what_is_not_ours(run: Command) -> None:
    """A foreign file, a bundle that somebody has changed, the cache; what is named goes, and no
    other."""
    run.build()
    run.bench.write("dist/notes.txt", "mine")
    run.bench.write("dist/a.ingot", "also mine")
    found = run.json("clean")
    assert found["kept"] == [str(run.bench.folder / "dist/a.ingot")]
    assert Path("dist/a.ingot").read_text() == "also mine"
    assert Path("dist/notes.txt").exists()
    assert not Path("dist/b.ingot").exists()
    run.build()
    assert run.json("clean", "a")["removed"] == [str(run.bench.folder / "dist/a.ingot")]
    assert Path("dist/b.ingot").exists()
    report = run.json("build", "-j1")
    assert {name: item["status"] for name, item in report["targets"].items()} == {
        "a": "built", "b": "unchanged", "test.a": "unchanged",
    }  # fmt: skip
    assert {count["ran"] for count in report["rules"].values()} == {0}


# -- watch -----------------------------------------------------------------------------------------


def watch_once(run: Command, change: Callable[[], object], *more: str, code: int = 0) -> str:
    """Run ``watch --once`` while ``change`` happens once it waits for one; return what it said on
    both streams."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert len(waits) < 10, "the change is not seen"
        if len(waits) == 1:
            change()

    run.monkeypatch.setattr("ingot_build_rules.tools.cli.watch.time", SimpleNamespace(sleep=wait))
    out = run("watch", "--once", "-j1", *more, code=code)
    return out + run.errors


def test_watch_builds_after_a_change(run: Command) -> None:
    """A changed model: said by name, and built."""
    said = watch_once(run, lambda: run.bench.edit("b", new_weight))
    assert "b.onnx changed" in said
    assert "built dist/b.ingot" in said
    assert run.bench.build().named("unchanged") == ["a", "b", "test.a"]


def test_watch_tells_of_a_mistake_and_goes_on(run: Command) -> None:
    """A project file that is no TOML for a while."""
    said = watch_once(run, lambda: run.bench.write("ingot.toml", "[model.a"), code=1)
    assert "ingot.toml changed" in said


def test_watch_tells_programs(run: Command) -> None:
    """With --json, a line for each build, also for one that a mistake stops."""
    change = lambda: run.bench.write("ingot.toml", "[model.a")
    said = watch_once(run, change, "--json", code=1).splitlines()
    reports = [checked("build", line) for line in said if line.startswith("{")]
    assert [report.get("built") for report in reports] == [["a", "b", "test.a"], None]
    assert "ingot.toml:1" in reports[1]["error"]["where"]


def test_a_glob_is_watched(run: Command) -> None:
    """A new file of a glob is a change."""
    run.bench.write(
        "ingot.toml",
        f'[model.m]\nsource = "m/*.onnx"\n[bundle.m]\nmodel = "m"\ntargets = ["{TARGET}"]\n'
        f'[model.a]\nsource = "a.onnx"\n[bundle.a]\nmodel = "a"\ntargets = ["{TARGET}"]\n',
    )
    run.bench.write("m/one.onnx", chain([4, 8, 4]).SerializeToString())
    said = watch_once(run, lambda: shutil.copy("a.onnx", "m/two.onnx"))
    assert "built dist/m/two.ingot" in said


@pytest.mark.broad
def test_process(run: Command) -> None:
    """The command as a process: progress on standard error, the summary on standard output, no
    color off a terminal."""
    line = [sys.executable, "-m", "ingot", "build", "-j1", "b"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert re.search(r"^1 built; ", done.stdout, re.MULTILINE)
    assert "built" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    with contextlib.suppress(FileNotFoundError):
        Path("dist/b.ingot").unlink()
    done = subprocess.run([*line, "--json"], capture_output=True, text=True, check=True)
    assert (done.stderr, json.loads(done.stdout)["built"]) == ("", ["b"])
