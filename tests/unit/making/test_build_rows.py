"""What a build repeats after each kind of edit: the rows of the issue, counted in actions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import onnx
import pytest
from tests.harness.build_harness import (
    TARGET,
    TEST,
    Workbench,
    all_in_workers,
    chain,
    new_weight,
    ran,
    with_external,
)

from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_compiler.ir.errors import VerificationError


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has one small model."""
    bench = Workbench(tmp_path_factory.mktemp("warm"), tmp_path_factory.mktemp("cache"))
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    return bench.cache


@pytest.fixture
def bench(tmp_path: Path, warm: Path) -> Workbench:
    """A project over a cache of its own that has one small model already: what runs depends on no
    other test."""
    shutil.copytree(warm, tmp_path / "cache")
    return Workbench(tmp_path / "project", tmp_path / "cache")


@pytest.fixture
def alone(tmp_path: Path) -> Workbench:
    """A project over a cache of its own."""
    return Workbench(tmp_path / "project", tmp_path / "cache")


def rename_nodes(model: onnx.ModelProto) -> None:
    """Give every node another name."""
    for node in model.graph.node:
        node.name = f"/renamed{node.name}"


def document(model: onnx.ModelProto) -> None:
    """Change what decides nothing."""
    model.doc_string = "trained on Monday"
    model.producer_name = "another exporter"
    model.graph.doc_string = "a graph"
    model.graph.node[0].doc_string = "a node"
    model.metadata_props.add(key="author", value="somebody")


def test_touched_inputs_run_nothing(bench: Workbench) -> None:
    """New times and old bytes: no action runs, the bundle keeps its time."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    before = stamp_of(str(bench.folder / "dist/a.ingot"))
    for path in ("a.onnx", "ingot.toml"):
        os.utime(bench.folder / path)
    report = bench.build()
    assert (ran(report), report.named("unchanged")) == ({}, ["a"])
    assert stamp_of(str(bench.folder / "dist/a.ingot")) == before


def test_branch_there_and_back_runs_nothing(bench: Workbench) -> None:
    """Another branch is built once, and the way back is free."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    first = bench.bundle("a")
    bench.project({"a": chain([4, 9, 4])})
    assert ran(bench.build())["codegen"] == 2
    bench.project({"a": chain([4, 8, 4])})
    assert ran(bench.build()) == {}
    assert bench.bundle("a") == first


def test_fresh_clone_runs_nothing(bench: Workbench, tmp_path: Path) -> None:
    """Another folder over a warm cache: no action runs; same bytes."""
    bench.project({"a": with_external(chain([4, 8, 4]), bench.folder, "a.bin")})
    bench.build()
    clone = Workbench(tmp_path / "a clone", bench.cache)
    shutil.copytree(bench.folder, clone.folder, ignore=shutil.ignore_patterns("dist", ".ingot"))
    assert ran(clone.build()) == {}
    assert clone.bundle("a") == bench.bundle("a")


def test_new_weights_make_no_code(bench: Workbench) -> None:
    """All weights are others with the same facts: nothing but import, packing and the bundle."""
    bench.project({"a": chain([40, 320, 40], seed=1)})
    bench.build()
    bench.project({"a": chain([40, 320, 40], seed=2)})
    assert ran(bench.build()) == {
        "import_model": 1,
        "pack_constant": 2,
        "digest_weights": 1,
        "bundle": 1,
    }


def test_one_new_weight_packs_one_constant(bench: Workbench) -> None:
    """One tensor of two changed: the other one is not packed again, for neither is so small that
    they are packed together."""
    bench.project({"a": chain([40, 320, 40])})
    bench.build()
    bench.edit("a", new_weight)
    assert ran(bench.build()) == {
        "import_model": 1,
        "pack_constant": 1,
        "digest_weights": 1,
        "bundle": 1,
    }


def test_documentation_is_one_action(bench: Workbench) -> None:
    """Doc strings, producer and metadata: import alone; the bundle keeps bytes and time."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    before, content = stamp_of(str(bench.folder / "dist/a.ingot")), bench.bundle("a")
    bench.edit("a", document)
    assert ran(bench.build()) == {"import_model": 1}
    assert stamp_of(str(bench.folder / "dist/a.ingot")) == before
    assert bench.bundle("a") == content


def test_node_names_are_beside_the_graph(bench: Workbench) -> None:
    """Node names: import, names and the bundle."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build()
    bench.edit("a", rename_nodes)
    assert ran(bench.build()) == {"import_model": 1, "names": 1, "bundle": 1}


@pytest.mark.broad
def test_one_layer_of_a_hundred(bench: Workbench) -> None:
    """Another activation, then another size: at most five kernels."""
    bench.project({"a": chain([12] * 101)})
    bench.build()

    def other_activation(model: onnx.ModelProto) -> None:
        model.graph.node[101].op_type = "Sigmoid"

    bench.edit("a", other_activation)
    counts = ran(bench.build())
    assert counts["codegen"] == counts["lower"] == 1
    bench.project({"a": chain([12] * 50 + [13] + [12] * 50)})
    counts = ran(bench.build())
    assert counts["codegen"] == counts["lower"] == 2


@pytest.mark.broad
def test_shared_kernels_are_compiled_once(alone: Workbench) -> None:
    """Two models of 50 different kernels each share 40: the second compiles exactly ten."""
    sizes = list(range(5, 56))
    alone.project({"a": chain(sizes)})
    assert ran(alone.build())["codegen"] == 50
    alone.project({"a": chain(sizes), "b": chain([*sizes[:41], *range(100, 110)])})
    report = alone.build()
    assert (report.counts["codegen"].ran, report.counts["codegen"].hit) == (10, 40)


@pytest.mark.broad
def test_two_targets_share_what_is_before_them(alone: Workbench) -> None:
    """A second target runs nothing that the first has run."""
    model = chain([4, 8, 4])
    alone.project({"a": model})
    alone.build()
    alone.project({"a": model}, targets=[TARGET, "x86-64-v4"])
    counts = ran(alone.build())
    assert not {"import_model", "infer_types", "optimize", "place"} & counts.keys()
    assert (counts["codegen"], counts["fuse"]) == (2, 1)


def test_external_data_concerns_who_reads_it(bench: Workbench) -> None:
    """A changed file of external data: the model that reads it, and no other."""
    models = {
        name: with_external(chain([4, 8, 4], seed=seed), bench.folder, f"{name}.bin")
        for seed, name in enumerate("ab")
    }
    bench.project(models)
    bench.build()
    content = bytearray((bench.folder / "a.bin").read_bytes())
    content[2] ^= 1
    bench.write("a.bin", bytes(content))
    report = bench.build()
    assert ran(report) == {"import_model": 1, "pack_constant": 1, "digest_weights": 1, "bundle": 1}
    assert (report.named("built"), report.named("unchanged")) == (["a"], ["b"])
    assert [path for path, _ in report.results[0].sources] == [
        str(bench.folder / name) for name in ("a.onnx", "a.bin")
    ]


def test_options_concern_what_they_decide(bench: Workbench) -> None:
    """Another planner: plan, main, link and bundle; no kernel."""
    bench.project({"a": chain([4, 8, 4])})
    bench.build(config=["bundle.a.planner=greedy_by_size"])
    counts = ran(bench.build(config=["bundle.a.planner=hill_climb"]))
    assert not {"codegen", "lower"} & counts.keys()
    assert (counts["plan_memory"], counts["bundle"]) == (1, 1)


def test_glob_finds_a_new_file(bench: Workbench) -> None:
    """A file that comes is built, one that goes is no target any more, the others are left
    alone."""
    bench.write("m/one.onnx", chain([4, 8, 4]).SerializeToString())
    bench.write(
        "ingot.toml",
        f'[model.m]\nsource = "m/*.onnx"\n[bundle.m]\nmodel = "m"\ntargets = ["{TARGET}"]\n',
    )
    assert bench.build().named("built") == ["m/one"]
    bench.write("m/two.onnx", chain([4, 8, 4], seed=3).SerializeToString())
    report = bench.build()
    assert (report.named("built"), report.named("unchanged")) == (["m/two"], ["m/one"])
    (bench.folder / "m/one.onnx").unlink()
    assert bench.build().named("unchanged") == ["m/two"]


def test_tests_run_when_what_they_read_changed(bench: Workbench) -> None:
    """A test runs once; again for other data, another bundle, another tolerance; not when it has
    passed on all of that."""
    bench.project({"a": chain([4, 8, 4])}, TEST)
    bench.data(chain([4, 8, 4]))
    report = bench.build()
    assert (report.named("built"), report.named("passed")) == (["a"], ["test.a"])
    assert bench.build().named("unchanged") == ["a", "test.a"]
    bench.data(chain([4, 8, 4]), shift=1e-6)
    assert bench.build().named("passed") == ["test.a"]
    assert bench.build(config=["test.a.tolerance=0.5"]).named("passed") == ["test.a"]
    assert bench.build(config=["test.a.tolerance=0.5"]).named("passed") == []


def test_failed_test_fails_until_it_passes(bench: Workbench) -> None:
    """A test that fails is a verification error in every build, though no action runs."""
    bench.project({"a": chain([4, 8, 4])}, TEST)
    bench.data(chain([4, 8, 4]), shift=1.0)
    for _ in range(2):
        report = bench.build()
        assert report.named("failed") == ["test.a"]
        error = report.results[-1].error
        assert isinstance(error, VerificationError)
        assert error.exit_code == 4
    bench.data(chain([4, 8, 4]))
    assert bench.build().named("passed") == ["test.a"]


@pytest.mark.broad
@pytest.mark.parametrize("workers", [False, True])
def test_same_bytes_whatever_the_way(
    alone: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: bool
) -> None:
    """One job, eight (here or in workers), cold, warm, another folder, the naive executor: the same
    bytes."""
    model = chain([4, 8, 4], ("Relu", "Sigmoid"))
    targets = [TARGET, "x86-64-v4"]
    alone.project({"a": model}, targets=targets)
    alone.build(jobs=1)
    expected = alone.bundle("a")
    if workers:
        all_in_workers(monkeypatch)
    other = Workbench(tmp_path / "another" / "folder", tmp_path / "another cache")
    other.project({"a": model}, targets=targets)
    other.build(jobs=8)
    assert other.bundle("a") == expected
    warm = Workbench(tmp_path / "warm", alone.cache)
    warm.project({"a": model}, targets=targets)
    assert ran(warm.build(jobs=8)) == {}
    assert warm.bundle("a") == expected
    compiled = compile_model(str(alone.folder / "a.onnx"), make_options(targets, {}, {}, ()))
    compiled.save(str(tmp_path / "naive.ingot"))
    assert (tmp_path / "naive.ingot").read_bytes() == expected
