"""Tests of a project are actions: in the cache, explained, and run again where something that
decides their result is another one. A test that fails is never in the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.harness.build_harness import (
    TARGET,
    TEST,
    Workbench,
    all_in_workers,
    chain,
    new_weight,
    npz,
    ran,
)

import ingot_runtime
from ingot_build_rules.engine.cache.file_digests import file_digest
from ingot_build_rules.making.testing.largest_error import Tolerance
from ingot_build_rules.making.testing.run_and_compare import (
    BundleRun,
    FileOfArrays,
    run_and_compare,
)
from ingot_build_rules.tools.workspace import run_tests
from ingot_build_rules.tools.workspace.build_report import Report
from ingot_build_rules.tools.workspace.run_tests import Code, code_that_runs
from ingot_compiler.ir.errors import UserError, VerificationError
from ingot_runtime.errors import DigestError, InputError
from ingot_runtime.ingot_error import IngotError

OTHER_TEST = TEST.replace("[test.a]", "[test.b]")
PASSED_ONCE = {"run_test": 1}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has one small model, and no test of it."""
    bench = Workbench(tmp_path_factory.mktemp("warm"), tmp_path_factory.mktemp("cache"))
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    return bench.cache


@pytest.fixture
def bench(tmp_path: Path, warm: Path) -> Workbench:
    """That model with a test that passes, over a cache of its own; not built."""
    shutil.copytree(warm, tmp_path / "cache")
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    bench.project({"a": chain([4, 8, 4])}, TEST)
    bench.data(chain([4, 8, 4]))
    return bench


def clone_of(bench: Workbench, name: str = "clone") -> Workbench:
    """Copy a project without what builds of it have left; it builds over the same cache."""
    left = shutil.ignore_patterns("dist", ".ingot")
    shutil.copytree(bench.folder, bench.folder.parent / name, ignore=left)
    return Workbench(bench.folder.parent / name, bench.cache)


def outcome(report: Report, name: str = "test.a") -> str:
    """What became of a test."""
    return next(item.status for item in report.results if item.name == name)


def failure(report: Report, name: str = "test.a") -> IngotError:
    """The error of a test that failed."""
    (found,) = [item for item in report.results if item.name == name]
    assert found.status == "failed"
    assert isinstance(found.error, IngotError)
    return found.error


def test_a_second_clone_does_not_run_a_test(bench: Workbench) -> None:
    """The pass is in the cache, whatever the folder; here it is not even looked up again."""
    assert ran(bench.build()) == PASSED_ONCE
    assert outcome(bench.build()) == "unchanged"
    report = clone_of(bench).build(expect_cached=True)
    assert (ran(report), report.named("passed")) == ({}, ["test.a"])
    assert report.counts["run_test"].hit == 1


def test_the_name_of_a_test_decides_nothing(bench: Workbench) -> None:
    """A second test of the same data on the same bundle is the same action."""
    bench.build()
    bench.project({"a": chain([4, 8, 4])}, TEST + OTHER_TEST)
    report = bench.build()
    assert (ran(report), report.named("passed")) == ({}, ["test.b"])


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    "config",
    [
        "test.a.tolerance=0.01",
        "test.a.absolute-tolerance=0.01",
        "test.a.threads=2",
        "test.a.executor=vm",
    ],
)
def test_what_the_project_says_of_a_test_decides(bench: Workbench, config: str) -> None:
    """It runs again for another tolerance, number of threads or executor; back, it is known."""
    bench.build()
    assert ran(bench.build(config=[config])) == PASSED_ONCE
    report = bench.build()
    assert (ran(report), outcome(report)) == ({}, "passed")


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "other",
    [("x86-64-v2", ("sse4.2",)), (TARGET, ("avx2", "fma", "something")), ("", ())],
)
def test_the_code_that_the_machine_runs_decides(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, other: Code
) -> None:
    """A pass of one variant says nothing of another one, nor of one with other features: neither
    in this folder nor in the cache."""
    bench.build()

    def other_code(_: tuple[str, ...]) -> Code:
        return other

    monkeypatch.setattr(run_tests, "code_that_runs", other_code)
    assert ran(bench.build()) == PASSED_ONCE
    report = bench.build(config=["test.a.tolerance=0.5"])
    (line,) = [line for line in report.explanations["test.a"] if "tolerance" in line]
    assert line == (
        "run_test (a): relative_tolerance changed 0.0001 -> 0.5, asked for by the project"
    )


def test_the_code_in_the_key_is_what_the_loader_takes(bench: Workbench) -> None:
    """Of several variants the same one; of code for another architecture none."""
    bench.project({"a": chain([4, 8, 4])}, targets=("x86-64-v2", TARGET))
    bench.build()
    with ingot_runtime.load(str(bench.folder / "dist/a.ingot")) as session:
        variant = session.loaded.variant
    assert code_that_runs(("x86-64-v2", TARGET)) == (variant.target, variant.features)
    assert code_that_runs(("aarch64",)) == ("", ())


def test_why_a_test_ran(bench: Workbench) -> None:
    """Data by their file, the bundle by the rule that makes it, the machine's code as such."""
    assert bench.build().explanations["test.a"] == (
        "first build here: 1 action had no result in the cache",
    )
    bench.edit("a", new_weight)
    bench.data(chain([4, 8, 4]), shift=1e-6)
    lines = bench.build(config=["test.a.tolerance=9"]).explanations["test.a"]
    assert [line.partition(" changed ")[0] for line in lines] == [
        f"run_test (a): {name}" for name in ("bundle", "outputs", "relative_tolerance")
    ]
    assert lines[0].endswith(", made by bundle")
    assert lines[1].endswith(f", file {bench.folder / 'y.npz'}")


def test_a_test_that_fails_is_not_cached(bench: Workbench) -> None:
    """It runs in each build, here and in a clone; what it passed on before is forgotten here."""
    bench.build()
    bench.data(chain([4, 8, 4]), shift=1.0)
    for each in (bench, bench, clone_of(bench)):
        report = each.build()
        assert isinstance(failure(report), VerificationError)
        assert [item.status for item in report.results[-1].actions] == ["failed"]
    report = bench.build(expect_cached=True)
    assert (outcome(report), report.would_run) == ("skipped", ["test.a"])


def test_a_failure_stops_no_other_test(bench: Workbench) -> None:
    """Nor does that of another bundle."""
    bench.project({"a": chain([4, 8, 4])}, TEST.replace("y.npz", "wrong.npz") + OTHER_TEST)
    bench.write("wrong.npz", npz(y=np.zeros((2, 4), np.float32)))
    report = bench.build()
    assert (report.named("failed"), report.named("passed")) == (["test.a"], ["test.b"])
    bench.project({"a": chain([4, 8, 4]), "z": chain([4, 8, 4])}, TEST)
    bench.write("z.onnx", b"no model")
    report = bench.build(config=["test.a.tolerance=0.25"])
    assert (report.named("failed"), report.named("passed")) == (["z"], ["test.a"])


@pytest.mark.broad
def test_a_pass_that_does_not_hold_is_forgotten(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--check-hits`` runs a test again that is known to pass; if it fails, no other build finds
    that pass."""
    bench.build()
    assert ran(bench.build(checked_share=1.0))["run_test"] == 1

    def refuse(*_: object) -> None:
        raise VerificationError("it fails today")

    with monkeypatch.context() as patch:
        patch.setattr("ingot_build_rules.making.testing.run_and_compare.run_and_compare", refuse)
        assert failure(bench.build(checked_share=1.0)).what == "it fails today"
    assert clone_of(bench).build(expect_cached=True).would_run == ["test.a"]


@pytest.mark.broad
def test_dry_run(bench: Workbench) -> None:
    """It says whether a test would run, or is known to pass, also before its bundle is there."""
    assert outcome(bench.build(dry_run=True)) == "would-run"
    bench.build()
    assert outcome(bench.build(dry_run=True)) == "unchanged"
    assert outcome(clone_of(bench).build(dry_run=True)) == "would-pass"
    bench.edit("a", new_weight)
    assert outcome(bench.build(dry_run=True)) == "would-run"


@pytest.mark.broad
def test_workers_and_lint(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runs in a worker, whose errors keep their class and exit code; under lint it reads
    what its key knows."""
    assert ran(bench.build(lint=True))["run_test"] == 1
    all_in_workers(monkeypatch)
    assert ran(bench.build(jobs=2, config=["test.a.tolerance=0.5"])) == PASSED_ONCE
    bench.data(chain([4, 8, 4]), shift=1.0)
    assert failure(bench.build(jobs=2)).exit_code == 4
    bench.write("x.npz", npz(z=np.zeros(1, np.float32)))
    assert isinstance(failure(bench.build(jobs=2)), InputError)


def test_code_that_cannot_run_here_fails(bench: Workbench) -> None:
    """The loader's own error, with its exit code."""
    bench.project({"a": chain([4, 8, 4])}, TEST, targets=("aarch64",))
    error = failure(bench.build())
    assert error.exit_code == 5
    assert "aarch64" in str(error)


def test_mistakes_in_the_data(bench: Workbench) -> None:
    """A file that is not there, an output that the model has not, one of another type; and of
    several that differ, all are named."""
    bench.write("y.npz", npz(nobody=np.zeros(1)))
    assert "test names outputs that the model has not" in str(failure(bench.build()))
    bench.write("y.npz", npz(y=np.zeros((2, 5), np.float32)))
    assert "expected float32 [2, 5], got float32 [2, 4]" in str(failure(bench.build()))
    (bench.folder / "y.npz").unlink()
    assert str(bench.folder / "y.npz") in str(failure(bench.build()))


def test_one_file_for_inputs_and_outputs(bench: Workbench) -> None:
    """Who names one file twice is told what is wrong with its arrays."""
    text = (bench.folder / "ingot.toml").read_text()
    assert text.count("y.npz") == 1
    bench.write("ingot.toml", text.replace("y.npz", "x.npz"))
    assert "test names outputs that the model has not" in str(failure(bench.build()))


def run(bench: Workbench, root: str, inputs: str, outputs: str) -> None:
    """Run the built bundle on its data, whose digests are given."""
    bundle, x, y = (str(bench.folder / name) for name in ("dist/a.ingot", "x.npz", "y.npz"))
    run_and_compare(
        BundleRun(bundle, root, 1, "aot"),
        FileOfArrays(x, inputs),
        FileOfArrays(y, outputs),
        Tolerance(1e-4, 0.0),
    )


def test_what_changes_meanwhile_is_refused(bench: Workbench) -> None:
    """A pass is one of the very bytes that the key names: another bundle in its place, or other
    data, is an error."""
    root = bench.build().results[0].root
    x, y = (file_digest(str(bench.folder / name)) for name in ("x.npz", "y.npz"))
    run(bench, root, x, y)
    with pytest.raises(DigestError):
        run(bench, "0" * 64, x, y)
    for inputs, outputs in (("0" * 64, y), (x, "0" * 64)):
        with pytest.raises(UserError, match="changed while it was read"):
            run(bench, root, inputs, outputs)
