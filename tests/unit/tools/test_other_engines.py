"""Engines that networks are timed beside: their list, what is told of one that has no result that
counts. No engine is installed here: a file stands for one."""

from __future__ import annotations

import ast
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from tests.benchmarks.bench_zoo import Result, page_rows
from tests.benchmarks.networks import NETWORKS, SPEED_TABLE
from tests.benchmarks.peers import trees
from tests.benchmarks.peers.pairs import Installed, Pair, timed_pair
from tests.benchmarks.peers.registry import ENGINES, Engine, python_of
from tests.tidy.source import ROOT
from tests.unit.tools.test_report_data import ROWS, WIDTH, matmul_chain

import ingot
import ingot_runtime

BENCHMARKS = ROOT / "tests" / "benchmarks"
ENGINE = """
import numpy as np
MODULE = "json"
def open_model(path, inputs, options):
    assert options == {"threads": 1, "outputs": ["y"]}, options
    result, = np.load(path).values()
    return lambda: [result]
"""


@dataclass(frozen=True, slots=True)
class Fake:
    """An engine whose file holds its result."""

    __file__: str
    SUFFIX: str = ".npz"


@dataclass(frozen=True, slots=True)
class Place:
    """A bundle, a network's folder, and where an engine is."""

    bundle: str
    network: Path
    made: Path
    installed: Installed

    def timed(self, engine: str = "fake") -> Pair:
        """Take turns."""
        return timed_pair(engine, self.installed, self.bundle, str(self.network), 1, 1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The file of the engine is newer than the model, so that it is not made anew."""
    network = tmp_path / "chain"
    network.mkdir()
    (network / "model.onnx").write_bytes(matmul_chain("rows"))
    bundle = str(tmp_path / "m.ingot")
    ingot.compile(network / "model.onnx").save(bundle)
    inputs = {"x": np.ones((ROWS, WIDTH), np.float32)}
    np.savez(network / "inputs.npz", allow_pickle=False, **inputs)
    (found,) = ingot_runtime.load(bundle).run(inputs).values()
    np.savez(network / "outputs.npz", allow_pickle=False, y=found)
    python = Path(python_of(str(tmp_path), "fake"))
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    opener = tmp_path / "fake.py"
    opener.write_text(ENGINE)
    monkeypatch.setitem(ENGINES, "fake", cast("Engine", Fake(str(opener))))
    made = tmp_path / "fake" / "made" / "chain" / "model.npz"
    made.parent.mkdir(parents=True)
    return Place(bundle, network, made, Installed(sys.executable, str(tmp_path)))


def test_a_pair(place: Place) -> None:
    """Both are timed where the results are near; some engines drop the axis of samples."""
    (wanted,) = np.load(place.network / "outputs.npz").values()
    np.savez(place.made, np.nextafter(wanted, np.float32(0)).reshape(-1))
    pair = place.timed()
    assert pair.ours > 0
    assert pair.theirs > 0
    assert 0 < pair.error < 1e-6
    assert pair.cell() == f"{pair.ours / pair.theirs:.3f}"


@pytest.mark.parametrize("scale", [1.1, math.nan])
def test_a_wrong_result_does_not_count(place: Place, scale: float) -> None:
    """It is told how far it is; nothing is timed."""
    (wanted,) = np.load(place.network / "outputs.npz").values()
    np.savez(place.made, wanted * np.float32(scale))
    pair = place.timed()
    assert pair.failure.startswith("wrong: the relative error is ")
    assert (pair.cell(), math.isnan(pair.ratio)) == ("fails", True)


def test_what_is_not_there(place: Place) -> None:
    """A file that cannot be opened, an environment that nobody made, a folder that is not named."""
    place.made.write_bytes(b"")
    assert place.timed().failure.startswith("it fails on this model: ")
    assert place.timed("mnn").failure.startswith("not installed: there is no ")
    nowhere = Place(place.bundle, place.network, place.made, Installed(sys.executable, None))
    assert nowhere.timed("mnn").failure == "not installed: no folder of environments is named"


def test_a_file_that_cannot_be_made(place: Place) -> None:
    """It is told what the engine's interpreter said last; nothing is left behind."""
    os.symlink(place.made.parents[2], place.made.parents[3] / "ncnn")
    failure = place.timed("ncnn").failure
    assert failure.startswith("not converted: ")
    assert "pnnx" in failure
    assert [path.name for path in place.made.parents[1].iterdir()] == []


def test_the_fastest_one_is_as_exact_as_we_are() -> None:
    """One that computes in a lower precision has a column, and is not the fastest; means are of
    those that run."""
    exact, rough = Pair("a", 1.0, 2.0, 1e-6), Pair("b", 1.0, 0.5, 1e-3)
    failed = Pair("b", math.nan, math.nan, math.nan, "why")
    results = [
        Result("one", (exact, rough), 1e-6, 1e-4, 1.0, 2_000_000),
        Result("two", (exact, failed), 1e-6, 1e-4, 1.0, 2_000_000),
    ]
    header, rows = page_rows(("a", "b"), results)
    assert header[:4] == ["network", "by a", "by b", "by the fastest one"]
    assert rows[0] == ["one", "0.500", "2.000", "0.500", "1.0e-06", "1.0 s", "2 MB"]
    assert rows[1][:4] == ["two", "0.500", "fails", "0.500"]
    assert rows[2] == ["geometric mean", "0.500", "2.000", "0.500", "", "", ""]


def test_each_file_is_listed() -> None:
    """An engine is one file and one line."""
    files = {path.stem for path in (BENCHMARKS / "peers" / "engines").glob("*.py")}
    assert files == ENGINES.keys()
    assert [*ENGINES] == sorted(ENGINES)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_each_engine_is_whole(engine: Engine) -> None:
    """Its packages have versions; it converts and opens; at import it needs nothing that is
    installed, for its file runs alone in its environment."""
    assert engine.PACKAGES
    assert all(package.count("==") == 1 for package in engine.PACKAGES)
    assert engine.SUFFIX.startswith(".")
    assert callable(engine.convert)
    assert callable(engine.open_model)
    assert engine.__file__ is not None
    tree = ast.parse(Path(engine.__file__).read_text(encoding="utf-8"))
    plain = [name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    named = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {*plain, *named} - {"collections.abc"} <= {*sys.stdlib_module_names}


@dataclass(frozen=True, slots=True)
class Rows:
    """A library of trees whose result is the first feature; it knows how often it was called."""

    calls: list[int]

    def open(self, folder: str, threads: int) -> trees.Predict:
        """Return what predicts."""
        assert (folder, threads) == ("folder", 1)
        return self.predict

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the first column."""
        self.calls.append(len(rows))
        return rows[:, 0]


def test_rows_of_trees_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a library of trees has the next rows; behind the last one the first follow."""
    rows = Rows([])
    monkeypatch.setitem(trees.LIBRARIES, "first", rows.open)
    inputs = {"x": np.arange(8, dtype=np.float32).reshape(4, 2)}
    options = {"library": "first", "rows": 2, "threads": 1}
    call = cast("Callable[[], list[np.ndarray]]", trees.open_model("folder", inputs, options))
    assert [call()[0].tolist() for _ in range(3)] == [[0, 2], [4, 6], [0, 2]]
    assert rows.calls == [2, 2, 2]
    assert {library for libraries in trees.MODELS.values() for library in libraries} == (
        trees.LIBRARIES.keys() - {"first", "ingot"}
    )


@pytest.mark.parametrize("script", ["bench_zoo.py", "peers/install.py"])
def test_commands(script: str) -> None:
    """Their help lists the engines; one that is not known is refused."""
    command = [sys.executable, str(BENCHMARKS / script)]
    told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(name in told for name in ENGINES)
    words = ["--models", "m", "--against", "mnm"] if "zoo" in script else ["folder", "mnm"]
    refused = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "unknown engine 'mnm'" in refused.stderr


def test_networks() -> None:
    """Those of the speed table are in the list, which is sorted."""
    assert NETWORKS.keys() >= {*SPEED_TABLE}
    assert [*NETWORKS] == sorted(NETWORKS)
