"""What a change of our own code repeats, and what users, folders and commands do not change: builds
by processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from tests.harness.build_harness import TARGET, Workbench, chain, make_cache, model_of
from tests.tidy.source import ROOT

PACKAGES = ("build_rules/ingot", "build_rules/ingot_build_rules", "compiler/ingot_compiler", "artifacts/ingot_artifacts",
            "runtime/ingot_runtime")  # fmt: skip
NOTHING_NEW = "\n_UNUSED = 1\n"


@dataclass
class Copy:
    """A project, built by a copy of all packages that may be edited."""

    bench: Workbench
    code: Path

    def run(self, *texts: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        full = {**os.environ, "PYTHONPATH": str(self.code), **environment}
        line = [sys.executable, "-m", "ingot", *texts]
        return subprocess.run(
            line, cwd=self.bench.folder, env=full, capture_output=True, text=True, check=True
        )

    def build(self) -> tuple[dict[str, int], dict[str, Any]]:
        """Build; return what ran, by rule, and the report."""
        report = json.loads(self.run("build", "-j1", "--json").stdout)
        return {
            name: count["ran"] for name, count in report["rules"].items() if count["ran"]
        }, report

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text in a source file, or append where ``old`` is empty."""
        file = self.code / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1) if old else text + new)


def copied(folder: Path) -> Copy:
    """An empty project, and a copy of the code."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / "code" / Path(package).name)
    return Copy(Workbench(folder / "project", Path(os.environ["INGOT_CACHE"])), folder / "code")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """A built project of one model with a SiLU, and a copy of the code."""
    copy = copied(tmp_path)
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"], name="/s"),
        helper.make_node("Mul", ["x", "s"], ["y"], name="/m"),
    ]
    copy.bench.project({"a": model_of(nodes, [3, 5], [3, 5], [])})
    copy.build()
    return copy


@pytest.mark.broad
def test_code_concerns_its_rules(copy: Copy) -> None:
    """A planner, a kernel's function, a translation, a pass without and with effect: their rules,
    and what differs after them."""
    bundle = copy.bench.bundle("a")
    assert copy.run("why", "a").stdout.startswith("a: up to date\n")
    copy.edit("ingot_compiler/passes/fuse_silu.py", "", NOTHING_NEW)
    head, pending, *_ = copy.run("why", "a").stdout.splitlines()
    assert head == "a: would be built again"
    assert pending.startswith("  ingot_compiler/passes/fuse_silu.py changed ")
    counts, report = copy.build()
    assert counts == {"optimize": 1}
    (code, file) = report["explanations"]["a"]
    assert code.startswith("optimize: code changed ")
    assert file.startswith("  file ingot_compiler/passes/fuse_silu.py ")
    assert copy.bench.bundle("a") == bundle
    copy.edit("ingot_compiler/memory/planners/best_fit.py", "", NOTHING_NEW)
    assert copy.build()[0] == {"plan_memory": 1}
    copy.edit("ingot_compiler/codegen/emit/math/erf.py", "", NOTHING_NEW)
    assert copy.build()[0] == {"codegen": 1}
    copy.edit("ingot_compiler/frontend/ops/activations.py", "", NOTHING_NEW)
    assert copy.build()[0] == {"import_model": 1, "infer_types": 1}
    assert copy.bench.bundle("a") == bundle
    copy.edit("ingot_compiler/passes/pipeline.py", "    fuse_silu.fuse_silu,\n", "")
    counts, report = copy.build()
    assert counts.keys() >= {"optimize", "place", "fuse", "lower", "codegen", "link", "bundle"}
    assert (
        not {"import_model", "names", "infer_types", "codegen_support", "pack_constant"}
        & counts.keys()
    )
    assert copy.bench.bundle("a") != bundle
    lines = report["explanations"]["a"]
    assert lines[0].startswith("optimize: code changed ")
    assert "  graph.nodes: 1 elements -> 2 elements" in lines
    assert copy.build()[0] == {}


@pytest.mark.broad
def test_code_of_a_back_end_concerns_its_devices(tmp_path: Path) -> None:
    """What one back end does not share runs nothing again for another; what they share runs again
    for both."""
    copy = copied(tmp_path)
    placed = '[bundle.two]\nmodel = "a"\nplace = {"/layer1/*" = "acc"}\n[bundle.two.devices]\nacc = "null"\n'
    copy.bench.project({"a": chain([4, 8, 4])}, placed)
    copy.build()
    backends = "ingot_compiler/backends"
    copy.edit(f"{backends}/host/main/main.py", "", NOTHING_NEW)
    assert copy.build()[0] == {"codegen_main": 2, "link": 2}, (
        "the variants of both bundles, and not the library"
    )
    copy.edit(f"{backends}/host/link.py", "", NOTHING_NEW)
    counts, report = copy.build()
    assert counts == {"link": 3}
    code, file = report["explanations"]["two"][:2]
    assert code.startswith(
        "link (null x86-64-v3): code ingot_compiler.backends.host.hooks:link_library changed "
    )
    assert file.startswith(f"  file {backends}/host/link.py ")
    copy.edit(f"{backends}/null/backend.py", "", NOTHING_NEW)
    copy.edit(f"{backends}/registry.py", "", NOTHING_NEW)
    assert copy.build()[0] == {}, (
        "where hooks are is in the key of whoever loads them, and nothing else of the list"
    )


@pytest.mark.broad
def test_users_and_commands_give_the_same_bytes(tmp_path: Path) -> None:
    """Another user, time zone, locale, hash seed; `ingot compile`: the same bundle, without an
    action."""
    bench = Workbench(tmp_path / "project", Path(os.environ["INGOT_CACHE"]))
    bench.project({"a": chain([4, 8, 4])}, targets=[TARGET, "x86-64-v4"])
    here = Copy(bench, ROOT / "nowhere")
    first, _ = here.build()
    assert first["bundle"] == 1
    bundle = bench.bundle("a")
    other = {
        "HOME": str(tmp_path),
        "USER": "other",
        "LOGNAME": "other",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
    }
    (bench.folder / "dist/a.ingot").unlink()
    cold = ["build", "-j2", "-q", "--cache", str(make_cache(tmp_path / "cold")), "--json"]
    assert json.loads(here.run(*cold, **other).stdout)["rules"]["bundle"]["ran"] == 1
    assert bench.bundle("a") == bundle
    line = [
        "compile",
        "a.onnx",
        "-o",
        "b.ingot",
        "--target",
        TARGET,
        "--target",
        "x86-64-v4",
        "--json",
    ]
    report = json.loads(here.run(*line, **other).stdout)
    assert (bench.folder / "b.ingot").read_bytes() == bundle
    assert {count["ran"] for count in report["rules"].values()} == {0}
