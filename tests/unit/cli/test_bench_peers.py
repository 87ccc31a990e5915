"""``ingot bench --against``: other engines beside a bundle, those that are missing or fail, mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.json_schemas import checked
from tests.unit.tools.test_report_data import ROWS, WIDTH, matmul_chain

import ingot
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.block_medians import block_ratio

# Engines that stand for the real ones: what each does is in the place of a network.
RUNTIME = """
__version__ = "9.1"
print("a banner, which is no answer")
class SessionOptions: pass
class InferenceSession:
    def __init__(self, path, settings, providers):
        assert settings.intra_op_num_threads == 1, settings
        open(path, "rb").close()
    def run(self, names, inputs):
        return [inputs["x"] + 1]
"""
REFUSES = "class Core:\n    def __init__(self): raise RuntimeError('no kernel\\nfor Gemm')\n"
DIES = """
class Core:
    calls = 0
    def read_model(self, path): return path
    def compile_model(self, *_): return self
    def create_infer_request(self): return self
    def infer(self, inputs, share_inputs):
        Core.calls += 1
        if Core.calls == 6:
            import os, sys
            sys.stderr.write("out of tiles\\n")
            os._exit(7)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its bundle, and inputs."""
    made = tmp_path_factory.mktemp("peers")
    (made / "m.onnx").write_bytes(matmul_chain("rows"))
    ingot.compile(made / "m.onnx").save(made / "m.ingot")
    np.savez(made / "x.npz", x=np.ones((ROWS, WIDTH), np.float32))
    return made


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which any process finds its modules first."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def bench(folder: Path, *words: str) -> int:
    """Run the command for a very short measurement."""
    inputs = ["--inputs", str(folder / "x.npz")] if (folder / "x.npz").exists() else []
    return main(["bench", *words, *inputs, "--seconds", "0.01"])


@pytest.mark.broad
def test_beside_an_engine_and_one_that_fails(
    folder: Path, engines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both that run have a time, theirs has a ratio with its interval; the third says why not."""
    (engines / "onnxruntime.py").write_text(RUNTIME)
    (engines / "openvino.py").write_text(REFUSES)
    words = [str(folder / "m.onnx"), "--against", "onnxruntime,openvino", "--anyway"]
    assert bench(folder, *words, "--json") == 0
    report = checked("bench", capsys.readouterr().out)
    ours, theirs, failed = report["engines"]
    assert (report["model"], report["threads"]) == (words[0], 1)
    assert report["round_count"] >= 6
    assert ours["call_seconds"]["median"] > 0
    assert ours["ratio"] is None
    assert theirs["version"] == "9.1"
    assert theirs["ratio"]["low"] <= theirs["ratio"]["median"] <= theirs["ratio"]["high"]
    assert failed["failure"] == "it fails on this model: RuntimeError: no kernel"
    assert failed["call_seconds"] is failed["ratio"] is failed["version"] is None
    assert bench(folder, *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == [
        "engine",
        "version",
        "call",
        "between",
        "and",
        "ratio",
        "between",
        "and",
    ]
    assert lines[4].startswith("onnxruntime  9.1 ")
    assert lines[5] == "openvino: it fails on this model: RuntimeError: no kernel"


def test_an_engine_that_dies_or_is_missing(
    folder: Path, engines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle and its model: what an engine said last, or which module is not there, is told in
    its line, and ours is measured."""
    (engines / "openvino.py").write_text(DIES)
    model = ["--model", str(folder / "m.onnx"), "--against", "openvino,onnxruntime"]
    assert bench(folder, str(folder / "m.ingot"), *model, "--json") == 0
    ours, died, missing = checked("bench", capsys.readouterr().out)["engines"]
    assert ours["failure"] is None
    assert died["failure"] == "its process ended with exit code 7: out of tiles"
    assert missing["failure"].startswith("not installed: ")
    assert missing["failure"].endswith(" has no module 'onnxruntime'")


def test_ratio() -> None:
    """It is that of blocks beside each other: what slows both down together does not move it."""
    ours = [[slow * 2.0] * 3 for slow in range(1, 21)]
    theirs = [[slow * 4.0] * 3 for slow in range(1, 21)]
    found = block_ratio(ours, theirs)
    assert (found.median, found.low, found.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["m.onnx", "--against", "onnxrutime"], "did you mean 'onnxruntime'?"),
        (["m.ingot", "--against", "openvino"], "name it: --model"),
        (["m.onnx", "--model", "m.onnx", "--against", "openvino"], "leave --model out"),
        (["m.onnx", "--against", "openvino", "--peer-python", "none"], "cannot be run"),
        (["m.onnx", "--against", "openvino", "--decode", "3"], "options --decode, --against"),
        (["m.onnx", "--against", "openvino", "--roofline"], "options --roofline, --against"),
        (["m.ingot", "--model", "none.onnx", "--against", "openvino"], "no such model file"),
        (["m.ingot", "--model", "m.onnx"], "--model without --against"),
        (["m.ingot", "--peer-python", "python3"], "--peer-python without --against"),
    ],
)
def test_mistakes(
    folder: Path,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each has an error in parts, before anything is compiled or started."""
    monkeypatch.chdir(folder)
    assert bench(folder, *words) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert said in told
