"""``--optimize``: what size gives, where it is said, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx.helper import make_graph, make_model, make_node, make_tensor_value_info
from onnx.numpy_helper import from_array
from tests.unit.ir.test_precision import FEED, MODEL

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_compiler.ir.errors import UserError

Output = pytest.CaptureFixture[str]
FLOAT = 1


def test_size_keeps_convolutions_direct(tmp_path: Path) -> None:
    """No transformed weights: the launch is direct, the weights are those of the model, results
    agree as far as sums of other orders do; Python and the command give the same bytes."""
    (tmp_path / "m.onnx").write_bytes(MODEL.SerializeToString())
    words = ["compile", f"{tmp_path}/m.onnx", "-o", f"{tmp_path}/size.ingot", "-q"]
    assert main([*words, "--target", "x86-64-v3", "--optimize", "size"]) == 0
    ingot.compile(MODEL, targets="x86-64-v3").save(tmp_path / "speed.ingot")
    small, fast = (describe_bundle(tmp_path / f"{name}.ingot") for name in ("size", "speed"))
    kinds = [
        [launch["kind"] for launch in each["debug"]["launches"]["x86-64-v3"]]
        for each in (small, fast)
    ]
    assert ("conv" in kinds[0], "winograd_2x2" in kinds[1]) == (True, True)
    assert not [kind for kind in kinds[0] if kind.startswith("winograd")]
    assert small["lock"]["options"]["optimize"] == "size"
    python = ingot.compile(MODEL, targets="x86-64-v3", optimize="size")
    assert python.to_bytes() == (tmp_path / "size.ingot").read_bytes()
    results = [
        ingot_runtime.load(tmp_path / f"{name}.ingot").run(FEED)["y"] for name in ("size", "speed")
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-4, abs=1e-4)


def test_records_have_what_is_no_default() -> None:
    """A bundle that is optimised for speed says what it said before there was a choice."""
    default, small = (make_options(["x86-64-v3"], optimize=each) for each in ("speed", "size"))
    assert "optimize" not in default.plain()
    assert recorded_options(default.plain()) == default
    assert recorded_options(small.plain()) == small


def test_projects_say_it() -> None:
    """As a default, or of one bundle; in Python as in the file."""
    text = (
        "[defaults]\noptimize = 'size'\n[model.m]\nsource = 'm.onnx'\n"
        "[bundle.a]\nmodel = 'm'\n[bundle.b]\nmodel = 'm'\noptimize = 'speed'\n"
    )
    asked = compile_requests(parse_project(text, "ingot.toml"), ["a", "b"])
    assert [request.options.choices.optimize for request in asked] == ["size", "speed"]
    project = ingot.Project()
    project.model("m", "m.onnx")
    project.bundle("a", model="m", optimize="size")
    (asked_of_python,) = compile_requests(project.freeze(), ["a"])
    assert asked_of_python.options == asked[0].options


def test_an_unknown_choice_is_refused(capsys: Output) -> None:
    """By the command and in Python, with the one that was probably meant; what other compilers
    call it leads to it."""
    assert main(["compile", "m.onnx", "-o", "m.ingot", "--optimize", "sise"]) == 1
    assert "did you mean 'size'?" in capsys.readouterr().err
    assert main(["compile", "m.onnx", "-o", "m.ingot", "-Os"]) == 1
    assert "--optimize" in capsys.readouterr().err
    with pytest.raises(UserError, match="unknown optimisation 'small'"):
        ingot.compile(MODEL, optimize="small")


def test_size_keeps_products_direct(tmp_path: Path) -> None:
    """A product that runs by Strassen's algorithm for speed has the smaller code of a direct one."""
    weights = from_array(np.ones((768, 768), np.float32), "w")
    x, y = (
        make_tensor_value_info(name, FLOAT, (128, size)) for name, size in (("x", 768), ("y", 768))
    )
    graph = make_graph([make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    for optimize, kind in (("speed", "matmul_strassen"), ("size", "matmul")):
        made = ingot.compile(make_model(graph), targets="x86-64-v4:znver4", optimize=optimize)
        made.save(tmp_path / f"{kind}.ingot")
        (launches,) = describe_bundle(tmp_path / f"{kind}.ingot")["debug"]["launches"].values()
        assert [launch["kind"] for launch in launches] == [kind]
