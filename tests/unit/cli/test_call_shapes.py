"""``--shape`` of run, bench and report: the shapes of one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from tests.unit.cli.test_cli import assert_refused
from tests.unit.cli.test_report_command import data_of

import ingot
from ingot_build_rules.tools.cli.building.compile_report import report_lines
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.call_shapes import call_shapes
from ingot_compiler.ir.errors import UserError


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON of a command that succeeds."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


INPUTS: dict[str, tuple[int | str, ...]] = {"a": ("n", 3), "b": ("m", "n"), "c": ()}


def test_one_shape_gives_the_sizes_of_its_names() -> None:
    """Dimensions of one name have one size; ``?`` stands for what the bundle says."""
    expected = {"a": (2, 3), "b": (5, 2), "c": ()}
    assert call_shapes(INPUTS, [("b", "5x2")]) == expected
    assert call_shapes(INPUTS, [("a", "2x?"), ("b", "5x2"), ("c", "scalar")]) == expected
    assert call_shapes(INPUTS, [("b", "0x2")])["b"] == (0, 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ("'a', 'b' have no fixed shapes", "--shape a=4x3 --shape b=4x4, or", "--inputs")),
        ([("a", "2x3")], ("'b' has no fixed shape", "such as --shape b=4x2, or")),
        ([("a", "2x4")], ("does not fit", "--shape a=2x4", "expected 3 for dimension 1, got 4")),
        ([("a", "2")], ("does not fit", "expected 2 sizes, got 1", "write --shape a=4x3")),
        ([("b", "5x2"), ("a", "2")], ("expected 2 sizes, got 1", "write --shape a=2x3")),
        ([("a", "2x3"), ("b", "5x4")], ("expected 2, as before for 'n', for dimension 1, got 4",)),
        ([("a", "?x3")], ("one size for each", "expected one number for dimension 0, got ?")),
        ([("a", "1..8x3")], ("one size for each", "got 1..8")),
        ([("aa", "2x3")], ("no input 'aa'", "expected one of 'a', 'b', 'c'", "did you mean 'a'?")),
        ([("a", "2x3"), ("a", "2x3")], ("given twice",)),
    ],
)  # fmt: skip
def test_what_is_no_shape_of_a_call(given: list[tuple[str, str]], words: tuple[str, ...]) -> None:
    """Refused in four parts."""
    with pytest.raises(UserError) as caught:
        call_shapes(INPUTS, given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_made_up_values_that_the_model_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says that nobody gave them; the command says for which sizes the workspace is."""
    monkeypatch.chdir(tmp_path)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, 1, [name.upper()]) for name in "xz"],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    Path("m.onnx").write_bytes(model.SerializeToString())
    assert main(["compile", "m.onnx", "-q"]) == 0
    arguments = ["run", "m.ingot", "--shape", "x=5", "--shape", "z=4"]
    assert_refused(capsys, arguments, 1, "refuses these inputs", "--inputs F.npz", "made up")


def test_a_workspace_of_open_sizes_says_so() -> None:
    """The bytes of a plan are told with the sizes that they are for."""
    variant = {"target": "t", "kernel_count": 1, "launch_count": 1, "planned_bytes": 64}
    values: dict[str, Any] = {
        "output": "o",
        "size_bytes": 1,
        "digest": "d" * 64,
        "seconds": 1.0,
        "placement": [],
    }
    for fixed, told in ((True, "workspace 64 B"), (False, "workspace 64 B for open sizes of 64")):
        (_, line) = report_lines({**values, "variants": [{**variant, "fixed": fixed}]}, None)
        assert line.endswith(told)


def test_the_verbs_take_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``run``, ``bench`` and ``report``; not beside a file of inputs."""
    monkeypatch.chdir(tmp_path)
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 3])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    ingot.compile(model).save("m.ingot")
    shape = ("--shape", "x=5x3")
    assert _told(capsys, "run", "m.ingot", *shape)["outputs"]["y"]["shape"] == [5, 3]
    assert (
        _told(capsys, "bench", "m.ingot", *shape, "--seconds", "0.01", "--anyway")["call_count"] > 0
    )
    assert _told(capsys, "report", "m.ingot", *shape, "--no-run")["output"] == "m.html"
    assert data_of(Path("m.html"))["shapes"] == {"x": [5, 3]}
    for verb in ("run", "bench", "report"):
        assert_refused(capsys, [verb, "m.ingot", "--shape", "x=5x4"], 1, "does not fit", "got 4")
    both = ["--shape", "x=5x3", "--inputs", "x.npz"]
    assert_refused(capsys, ["run", "m.ingot", *both], 1, "inputs and shapes", "leave one")
