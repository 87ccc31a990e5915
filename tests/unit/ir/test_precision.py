"""``--precision``: what each value gives, where it is said, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import normal

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_compiler.ir.errors import UserError

Output = pytest.CaptureFixture[str]
MODEL = make_model(
    [node("Relu", "x", "a"), node("Conv", "a w", "y", name="second", pads=[1, 1, 1, 1])],
    [tensor("x", [1, 64, 24, 24])],
    [tensor("y", None)],
    {"w": normal(0, 64, 64, 3, 3)},
)
FEED = {"x": normal(1, 1, 64, 24, 24)}


def test_inspect_names_the_method_and_all_ways_to_run_agree(tmp_path: Path, capsys: Output) -> None:
    """Behind a ReLU tiles of 2x2, with ``fast`` of 3x4; the same bits for all threads, native and
    stepped."""
    (tmp_path / "m.onnx").write_bytes(MODEL.SerializeToString())
    for precision, kind in (("f32", "winograd_2x2"), ("fast", "winograd_3x4")):
        path = tmp_path / f"{precision}.ingot"
        words = ["compile", f"{tmp_path}/m.onnx", "-o", str(path), "--precision", precision, "-q"]
        assert main([*words, "--target", "x86-64-v3"]) == 0
        assert main(["inspect", str(path)]) == 0
        assert f"{kind}  f32[1, 64, 24, 24]  second (Conv)" in capsys.readouterr().out
        run_all_ways(path, [FEED])
    python = ingot.compile(MODEL, targets="x86-64-v3", precision="fast")
    assert python.to_bytes() == (tmp_path / "fast.ingot").read_bytes()


def test_strict_code_is_that_of_the_lowest_level(tmp_path: Path) -> None:
    """One variant for all levels of an architecture: that every processor gives the same bits needs
    no more proof."""
    path = tmp_path / "strict.ingot"
    ingot.compile(MODEL, targets=["x86-64-v3", "x86-64-v4"], precision="strict").save(path)
    described = describe_bundle(path)
    assert list(described["kernels"]) == ["x86-64-v2"]
    assert described["lock"]["options"]["precision"] == "strict"
    run_all_ways(path, [FEED])


def test_records_have_what_is_no_default() -> None:
    """A bundle of the default precision says what it said before there was a choice."""
    default, fast = (make_options(["x86-64-v3"], precision=each) for each in ("f32", "fast"))
    assert "precision" not in default.plain()
    assert recorded_options(default.plain()) == default
    assert recorded_options(fast.plain()) == fast


def test_projects_say_it() -> None:
    """As a default, or of one bundle; in Python as in the file."""
    text = (
        "[defaults]\nprecision = 'fast'\n[model.m]\nsource = 'm.onnx'\n"
        "[bundle.a]\nmodel = 'm'\n[bundle.b]\nmodel = 'm'\nprecision = 'f32'\n"
    )
    asked = compile_requests(parse_project(text, "ingot.toml"), ["a", "b"])
    assert [request.options.choices.precision for request in asked] == ["fast", "f32"]
    project = ingot.Project()
    project.model("m", "m.onnx")
    project.bundle("a", model="m", precision="fast")
    (asked_of_python,) = compile_requests(project.freeze(), ["a"])
    assert asked_of_python.options == asked[0].options


def test_an_unknown_precision_is_refused(capsys: Output) -> None:
    """By the command and in Python, with the one that was probably meant."""
    assert main(["compile", "m.onnx", "-o", "m.ingot", "--precision", "fats"]) == 1
    assert "did you mean 'fast'?" in capsys.readouterr().err
    with pytest.raises(UserError, match="unknown precision 'strikt'") as raised:
        ingot.compile(MODEL, precision="strikt")
    assert str(raised.value.do) == "did you mean 'strict'?"


@pytest.mark.parametrize(
    ("targets", "devices", "what"),
    [
        (["aarch64"], {}, "aarch64 has no strict code"),
        (["x86-64-v3"], {"acc": "cpu:1,target=x86-64-v3"}, "device acc has no strict code"),
    ],
)
def test_what_has_no_strict_code(targets: list[str], devices: dict[str, str], what: str) -> None:
    """Architectures that always multiply and add in one, and code of other targets."""
    with pytest.raises(UserError, match=what):
        make_options(targets, devices=devices, precision="strict")
    beside = make_options(["x86-64-v3"], devices={"acc": "cpu:1"}, precision="strict")
    assert [device.target for device in beside.devices] == ["x86-64-v2"]
