"""``ingot quantize``: models with weights of 4 and 8 bits, the error of each layer, what is
refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.json_schemas import checked

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.op import Array
from ingot_compiler.quantizer.round_weights import round_weights
from ingot_compiler.quantizer.weight_layers import load_model


def two_layers(depth: int = 64) -> ModelProto:
    """A Gemm with a transposed matrix and a bias, then a MatMul; and a product of no whole
    blocks."""
    rng = np.random.default_rng(5)
    constants: dict[str, Array] = {
        "w0": rng.standard_normal((48, depth)).astype(np.float32) / 8,
        "b0": rng.standard_normal(48).astype(np.float32),
        "w1": rng.standard_normal((48, 40)).astype(np.float32) / 8,
        "w2": rng.standard_normal((40, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], "first", transB=1),
        node("Relu", "h", "r"),
        helper.make_node("MatMul", ["r", "w1"], ["m"], "second"),
        helper.make_node("MatMul", ["m", "w2"], ["y"], "third"),
    ]
    return make_model(nodes, [tensor("x", ["n", depth])], [tensor("y", ["n", 3])], constants)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model and inputs, the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(two_layers().SerializeToString())
    x = np.random.default_rng(6).standard_normal((9, 64)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    return tmp_path


def quantized(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the verb says with --json."""
    assert main(["quantize", "m.onnx", *words, "--json"]) == 0
    return checked("quantize", capsys.readouterr().out)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("weights", "least", "greatest"), [("int4", 0.03, 0.2), ("int8", 0.002, 0.01)]
)
def test_layers_and_outputs(
    weights: str, least: float, greatest: float, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each layer's error is told, and what was left out; the bundle of the new model gives outputs
    as near as was told."""
    told = quantized(capsys, "--weights", weights, "--block", "16", "--calibrate", "x.npz")
    assert told["output"] == f"m.{weights}.onnx"
    assert [(layer["node"], layer["shape"]) for layer in told["layers"]] == [
        ("first", [64, 48]),
        ("second", [48, 40]),
    ]
    assert all(least < layer["error"] < greatest for layer in told["layers"])
    assert told["left_out"] == [
        {"node": "third", "reason": "blocks of 16 do not divide a depth of 40"}
    ]
    (output,) = told["outputs"]
    assert told["output_bytes"] == (folder / told["output"]).stat().st_size < told["model_bytes"]
    x = np.load("x.npz")["x"]
    results: list[Array] = []
    for name in ("m.onnx", told["output"]):
        ingot.compile(name).save("m.ingot")
        with ingot_runtime.load("m.ingot") as session:
            results.append(session.run({"x": x})["y"].astype(np.float64))
    expected, got = results
    apart = np.sqrt(((got - expected) ** 2).mean() / (expected**2).mean())
    assert apart == pytest.approx(output["error"], rel=1e-3)
    assert 0 < apart < 2 * greatest


def test_the_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json a line for each layer; the same words give the same file."""
    assert main(["quantize", "m.onnx", "--weights", "int4", "-o", "a.onnx"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "error of each layer, rms:"
    assert lines[1].split()[:2] == ["first", "64x48"]
    assert lines[-1].startswith("a.onnx: ")
    assert main(["quantize", "m.onnx", "--weights", "int4", "-o", "b.onnx"]) == 0
    assert (folder / "a.onnx").read_bytes() == (folder / "b.onnx").read_bytes()
    made = load_model("a.onnx")
    assert [item.op_type for item in made.graph.node][:2] == ["MatMulNBits", "Add"]
    assert "w0" not in [item.name for item in made.graph.initializer]


@pytest.mark.broad
@pytest.mark.usefixtures("folder")
def test_calls_in_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows in two calls count as those of one."""
    x = np.load("x.npz")["x"]
    Path("calls").mkdir()
    for number, rows in enumerate((x[:4], x[4:])):
        np.savez(f"calls/{number}.npz", x=rows)
    made: list[bytes] = []
    told: list[Any] = []
    for inputs in ("x.npz", "calls"):
        told.append(quantized(capsys, "--weights", "int4", "--block", "16", "--calibrate", inputs))
        made.append(Path("m.int4.onnx").read_bytes())
    assert made[0] == made[1]
    one, two = (found["outputs"][0]["error"] for found in told)
    assert one == pytest.approx(two, rel=1e-6)


def test_rounding() -> None:
    """No number leaves the range, zeros stay zeros, and knowing the activations lowers the error
    that they see."""
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((64, 5)).astype(np.float32)
    weights[:32, 2] = 0
    squares = np.where(np.arange(64) % 8 == 0, 100.0, 0.01)
    seen: list[float] = []
    for known in (None, squares):
        rounded = round_weights(weights, 4, 32, known)
        assert (rounded.codes[2, 0] == 8).all()
        numbers = (rounded.codes.astype(np.float64) - 8) * rounded.scales[..., None]
        back = numbers.reshape(5, 64).T
        assert np.abs(back - weights).max() <= np.abs(weights).max() / 2
        seen.append(float(((back - weights) ** 2 * squares[:, None]).sum()))
    assert seen[1] < seen[0]


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--weights", "int4", "--block", "24"], "expected a power of 2 of at least 16, got '24'"),
        (["--weights", "int4", "--block", "8"], "expected a power of 2 of at least 16, got '8'"),
        (["--weights", "int3"], "int3"),
        (["--weights", "int4", "--block", "128"], "blocks of 128 do not divide a depth of 64"),
        (["--weights", "int4", "-o", "m.onnx"], "the output is an input of the command"),
        (["--weights", "int4", "--calibrate", "other.npz"], "no input 'z'"),
        (["--weights", "int4", "--calibrate", "absent.npz"], "absent.npz"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_refusals(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong blocks, types, places and inputs are errors of the user that name what was given;
    nothing is written."""
    np.savez("other.npz", z=np.zeros((2, 64), np.float32))
    assert main(["quantize", "m.onnx", *words]) == 1
    assert told in capsys.readouterr().err
    assert not Path("m.int4.onnx").exists()


@pytest.mark.usefixtures("folder")
def test_weights_that_are_no_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN is refused by the name of the tensor."""
    model = two_layers()
    broken = numpy_helper.to_array(model.graph.initializer[0]).copy()
    broken[3, 3] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(broken, "w0"))
    Path("m.onnx").write_bytes(model.SerializeToString())
    assert main(["quantize", "m.onnx", "--weights", "int4"]) == 1
    assert "tensor 'w0'" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_half_weights_keep_their_type(capsys: pytest.CaptureFixture[str]) -> None:
    """Weights of f16 have scales of f16, and the product the type of its operand."""
    weights: Array = np.random.default_rng(8).standard_normal((32, 6)).astype(np.float16)
    half = TensorProto.FLOAT16
    nodes = [node("MatMul", "x w", "y")]
    model = make_model(
        nodes, [tensor("x", [2, 32], half)], [tensor("y", [2, 6], half)], {"w": weights}
    )
    Path("m.onnx").write_bytes(model.SerializeToString())
    told = quantized(capsys, "--weights", "int8")
    kinds = {item.name: item.data_type for item in load_model(told["output"]).graph.initializer}
    assert kinds["w_q0_scales"] == half
    ingot.compile(told["output"]).save("m.ingot")
    x = np.ones((2, 32), np.float16)
    with ingot_runtime.load("m.ingot") as session:
        y = session.run({"x": x})["y"]
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, x @ weights, 0.05, 0.05)
