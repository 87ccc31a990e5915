"""``ingot quantize --dynamic``: rows that are rounded by themselves, what it tells and refuses, and
how near is near enough for each way to quantize."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.end_to_end_harness import check_model, make_model, reference, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.json_schemas import checked
from tests.unit.cli.test_quantize_static import Layers

from ingot_build_rules.tools.cli.main import main
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.quantizer.prepare_model import prepare_model
from ingot_compiler.quantizer.weight_layers import load_model
from ingot_compiler.quantizer.write_by_rows import row_layers, write_by_rows

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH = 24


def encoder(opset: int = 20) -> ModelProto:
    """A layer of a transformer: products that share what they multiply, of three and of two axes,
    one turned, a product of two activations."""
    layers = Layers()
    parts = [layers.add(part, "MatMul", ["x", layers.weights(WIDTH, WIDTH)]) for part in "qkv"]
    turned = layers.add("turned", "Transpose", [parts[1]], perm=[0, 2, 1])
    shares = layers.add(
        "shares", "Softmax", [layers.add("s", "MatMul", [parts[0], turned])], axis=-1
    )
    mixed = layers.add("mixed", "MatMul", [shares, parts[2]])
    flat = layers.add("flat", "Reshape", [mixed, layers.whole(-1, WIDTH)])
    wide = layers.add(
        "wide", "Gemm", [flat, layers.weights(40, WIDTH), layers.weights(40)], transB=1
    )
    layers.add("y", "Gemm", [layers.add("act", "Relu", [wide]), layers.weights(40, 8)])
    x = tensor("x", ["batch", "length", WIDTH])
    model = make_model(layers.nodes, [x], [tensor("y", ["rows", 8])], layers.stored)
    model.opset_import[0].version = opset
    return model


def tokens(seed: int = 4) -> Array:
    """Rows of very different sizes: one has a thousand times the numbers of another one."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(2, 5, WIDTH)) * np.logspace(-2, 1, 5)[:, None]
    return rows.astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The encoder and one call, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(encoder().SerializeToString())
    np.savez(tmp_path / "x.npz", x=tokens())
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    """What the verb says with --json."""
    assert main(["quantize", "m.onnx", *words, "--json"]) == code
    return checked("quantize", capsys.readouterr().out)


@pytest.mark.usefixtures("folder")
def test_every_row_has_its_own_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Products of stored matrices run on integers, which the reference runs alike; a small row is
    as near as a large one, and none depends on the others of its batch."""
    found = told(capsys, "--dynamic", "-o", "d.onnx")
    assert found["dynamic"]
    assert [layer["node"] for layer in found["layers"]] == [
        f"node {name}" for name in ("q", "k", "v", "wide", "y")
    ]
    assert [left["node"] for left in found["left_out"]] == ["node s", "node mixed"]
    assert (found["calls"], found["outputs"], found["layers"][0]["error"]) == (0, [], None)
    made, x = load_model("d.onnx"), tokens()
    graph = optimize(translate(made, MemoryStore())[0]).graph
    kinds = [node.op for node in graph.nodes if node.op in ("matmul", "matmul_integer")]
    assert kinds.count("matmul_integer") == 5
    (got,) = check_model(made, [{"x": x}], tmp_path, 1e-5, floor=1e-5)
    wanted = reference(encoder(), {"x": x})["y"]
    apart = np.sqrt(((got["y"] - wanted) ** 2).mean(1) / (wanted**2).mean(1))
    assert apart.max() < 0.03
    alone = reference(made, {"x": x[:, :1]})["y"]
    first = reference(write_by_rows(prepare_model(encoder()), []), {"x": x[:, :1]})["y"]
    assert np.abs(alone - first).max() < 0.03 * np.abs(first).max()


@pytest.mark.sweep(6)
@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
def test_every_opset(opset: int, tmp_path: Path) -> None:
    """ReduceMax has its axes where the opset wants them; older models are converted."""
    model = prepare_model(encoder(opset))
    layers, _ = row_layers(model)
    check_model(write_by_rows(model, layers), [{"x": tokens()}], tmp_path, 1e-5, floor=1e-5)


def test_rows_of_zeros_and_infinities() -> None:
    """A row of zeros gives zeros; what is infinite spoils its own row alone."""
    layers = Layers()
    layers.add("y", "MatMul", ["x", layers.weights(WIDTH, 8)])
    x = tensor("x", ["n", WIDTH])
    model = make_model(layers.nodes, [x], [tensor("y", ["n", 8])], layers.stored)
    made = write_by_rows(model, row_layers(model)[0])
    rows = tokens()[0].copy()
    rows[0], rows[1, 3] = 0, np.inf
    got, wanted = (reference(each, {"x": rows})["y"] for each in (made, model))
    assert not got[0].any()
    np.testing.assert_allclose(got[2:], wanted[2:], atol=0.03 * np.abs(wanted[4]).max())


@pytest.mark.broad
@pytest.mark.usefixtures("folder")
def test_rows_are_nearer_than_ranges_of_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    """Where tokens differ in size; the command says how many calls ranges want."""
    rows = told(capsys, "--dynamic", "--calibrate", "x.npz")
    ranges = told(capsys, "--calibrate", "x.npz")
    assert rows["outputs"][0]["error"] < 0.5 * ranges["outputs"][0]["error"]
    assert (ranges["calls"], ranges["calls_wanted"]) == (1, 32)
    assert main(["quantize", "m.onnx", "--calibrate", "x.npz"]) == 0
    assert "ranges of 1 call; some 32 are wanted" in capsys.readouterr().out


def spoiled() -> ModelProto:
    """Two products, the second one of a tensor with one huge number in each row."""
    layers = Layers()
    h = layers.add("h", "MatMul", ["x", layers.weights(WIDTH, WIDTH)])
    spike = np.zeros(WIDTH, np.float32)
    spike[3] = 4000
    layers.stored["spike"] = spike
    hard = layers.add("hard", "Add", [h, "spike"])
    w = layers.weights(WIDTH, 8)
    layers.stored[w][3] = 0
    layers.add("y", "MatMul", [hard, w])
    x = tensor("x", ["batch", "length", WIDTH])
    return make_model(layers.nodes, [x], [tensor("y", None)], layers.stored)


@pytest.mark.broad
@pytest.mark.parametrize("way", [(), ("--dynamic",)])
@pytest.mark.usefixtures("folder")
def test_what_is_too_far_is_refused(
    way: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written; the node that costs most is named, and the command that it gives is
    accepted. Without a limit it is a warning."""
    Path("m.onnx").write_bytes(spoiled().SerializeToString())
    words = [*way, "--calibrate", "x.npz"]
    found = told(capsys, *words, "--max-error", "3%", code=1)
    assert not Path("m.int8.onnx").exists()
    assert found["proposals"][0]["node"] == "node y"
    assert found["proposals"][0]["error"] < 0.03 < found["outputs"][0]["error"]
    assert "--keep 'node y' gives" in found["error"]["do"]
    kept = told(capsys, *words, "--max-error", "0.03", "--keep", "node y")
    assert kept["outputs"][0]["error"] == pytest.approx(found["proposals"][0]["error"], rel=1e-3)
    assert kept["warnings"] == []
    (line,) = told(capsys, *words)["warnings"]
    assert "more than 5.0%" in line
    assert main(["quantize", "m.onnx", *words]) == 0
    shown = capsys.readouterr()
    assert "warning: an output is " in shown.err
    assert "  --keep 'node y' gives" in shown.out


@pytest.mark.sweep(14)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dynamic", "--ranges", "mse"], "option --ranges"),
        (["--dynamic", "--weights", "int8"], "option --dynamic"),
        (["--dynamic", "--block", "32"], "option --block"),
        (["--dynamic", "--max-error", "0.1"], "give some by --calibrate"),
        (["--calibrate", "x.npz", "--max-error", "none"], "try --max-error 2%"),
        (["--calibrate", "x.npz", "--max-error", "0"], "got '0'"),
        (["--dynamic", "--keep", "*"], "nothing to quantize"),
        ([], "--dynamic"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_refusals(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By name; nothing is written."""
    assert main(["quantize", "m.onnx", *words]) == 1
    assert said in capsys.readouterr().err
    assert not Path("m.int8.onnx").exists()


def test_convolutions_are_left_by_name(tmp_path: Path) -> None:
    """They have no rows."""
    layers = Layers()
    layers.conv("c", "x", 4, 3, 3, 3)
    layers.nodes.append(helper.make_node("Flatten", ["c"], ["f"]))
    layers.add("y", "Gemm", ["f", layers.weights(4 * 25, 5)])
    model = make_model(
        layers.nodes, [tensor("x", [1, 3, 5, 5])], [tensor("y", None)], layers.stored
    )
    found, left = row_layers(model)
    assert [layer.name for layer in found] == ["node y"]
    assert [name for name, _ in left] == ["node c"]
    x = np.random.default_rng(1).normal(size=(1, 3, 5, 5)).astype(np.float32)
    check_model(write_by_rows(model, found), [{"x": x}], tmp_path, 1e-5, floor=1e-5)
