"""``ingot quantize --calibrate``: networks of integers from end to end, errors as
``onnx.reference`` finds them, ranges, rounded weights, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.harness.end_to_end_harness import make_model, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.json_schemas import checked

from ingot_build_rules.making.report.integer_report import products_in_floats_line
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.quantizer.channel_weights import channel_weights
from ingot_compiler.quantizer.choose_tensors import choose_tensors
from ingot_compiler.quantizer.prepare_model import prepare_model
from ingot_compiler.quantizer.ranges import METHODS, Range, parameters
from ingot_compiler.quantizer.weight_layers import load_model
from ingot_compiler.quantizer.write_integers import write_integers

Array = np.ndarray[Any, np.dtype[Any]]


class Layers:
    """Collects named nodes and stored arrays."""

    def __init__(self, seed: int = 3) -> None:
        """Start with none."""
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.stored: dict[str, Array] = {}

    def add(self, name: str, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """One node; its result has its name."""
        self.nodes.append(helper.make_node(op, inputs, [name], f"node {name}", **attributes))
        return name

    def weights(self, *shape: int) -> str:
        """Normal numbers whose products keep the size of what they multiply."""
        name = f"w{len(self.stored)}"
        depth = int(np.prod(shape[1:])) if len(shape) > 1 else 4
        self.stored[name] = (self.random.standard_normal(shape) / depth**0.5).astype(np.float32)
        return name

    def whole(self, *numbers: int) -> str:
        """Integers."""
        name = f"i{len(self.stored)}"
        self.stored[name] = np.array(numbers)
        return name

    def conv(self, name: str, x: str, *shape: int, **attributes: Any) -> str:
        """A convolution with a bias."""
        pads = [shape[-1] // 2] * 4
        operands = [x, self.weights(*shape), self.weights(shape[0])]
        return self.add(name, "Conv", operands, pads=pads, **attributes)


def network() -> ModelProto:
    """Convolutions, one of each channel alone, a residual sum, a gate of the whole image, pools, a
    concatenation, a product."""
    layers = Layers()
    x = layers.add("r0", "Relu", [layers.conv("c0", "x", 8, 3, 3, 3, strides=[2, 2])])
    layers.stored["six"] = np.array(6, np.float32)
    layers.stored["none"] = np.array(0, np.float32)
    each = layers.conv("c1", x, 8, 1, 3, 3, group=8)
    each = layers.add("r1", "Clip", [each, "none", "six"])
    x = layers.add("sum", "Add", [x, layers.conv("c2", each, 8, 8, 1, 1)])
    gate = layers.add("mean", "GlobalAveragePool", [x])
    gate = layers.add("r3", "Relu", [layers.conv("c3", gate, 4, 8, 1, 1)])
    gate = layers.add("gate", "Sigmoid", [layers.conv("c4", gate, 8, 4, 1, 1)])
    x = layers.add("gated", "Mul", [x, gate])
    parts = [
        layers.add("largest", "MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]),
        layers.add("average", "AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    flat = layers.add("flat", "Flatten", [layers.add("both", "Concat", parts, axis=1)])
    layers.add("y", "Gemm", [flat, layers.weights(10, 16 * 9), layers.weights(10)], transB=1)
    inputs, outputs = [tensor("x", ["batch", 3, 12, 12])], [tensor("y", ["batch", 10])]
    return make_model(layers.nodes, inputs, outputs, layers.stored)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the network and three calls, the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(network().SerializeToString())
    (tmp_path / "calls").mkdir()
    random = np.random.default_rng(4)
    for number in range(3):
        x = random.standard_normal((2, 3, 12, 12)).astype(np.float32)
        np.savez(tmp_path / "calls" / f"{number}.npz", x=x)
    return tmp_path


def quantized(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the verb says with --json."""
    assert main(["quantize", "m.onnx", "--calibrate", "calls", *words, "--json"]) == 0
    return checked("quantize", capsys.readouterr().out)


def calls() -> list[Array]:
    """The inputs that were calibrated with."""
    return [np.load(file)["x"] for file in sorted(Path("calls").glob("*.npz"))]


def reference(model: ModelProto, names: Sequence[str]) -> list[Array]:
    """Tensors of a model, as ``onnx.reference`` computes them, all calls one behind the other."""
    probe = ModelProto()
    probe.CopyFrom(model)
    known = {value.name for value in model.graph.output}
    probe.graph.output.extend(tensor(name, None) for name in names if name not in known)
    run: Any = ReferenceEvaluator(probe)
    found: list[Any] = [run.run(list(names), {"x": x}) for x in calls()]
    return [np.concatenate(parts).astype(np.float64) for parts in zip(*found, strict=True)]


@pytest.mark.broad
@pytest.mark.parametrize("activations", ["uint8", "int8"])
@pytest.mark.usefixtures("folder")
def test_errors_are_those_of_the_reference(
    activations: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each layer is told by its node; its error and that of the output are those that the reference
    finds between both files."""
    told = quantized(capsys, "--activations", activations)
    assert (told["output"], told["activations"], told["calls"]) == ("m.int8.onnx", activations, 3)
    names = [layer["node"] for layer in told["layers"]]
    assert names == [f"node {name}" for name in ("c0", "c1", "c2", "c3", "c4", "y")]
    assert told["layers"][0]["shape"] == [8, 3, 3, 3]
    assert told["left_out"] == []
    results = ["r0", "r1", "sum", "r3", "gated", "y"]
    made = load_model(told["output"])
    expected, got = reference(network(), results), reference(made, results)
    for layer, wanted, given in zip(told["layers"], expected, got, strict=True):
        apart = float(np.sqrt(((given - wanted) ** 2).mean() / (wanted**2).mean()))
        assert layer["error"] == pytest.approx(apart, rel=0.05)
        assert 0 < apart < 0.05
    assert told["outputs"] == [{"name": "y", "error": told["layers"][-1]["error"]}]


@pytest.mark.broad
@pytest.mark.usefixtures("folder")
def test_no_product_runs_in_floats(capsys: pytest.CaptureFixture[str]) -> None:
    """The compiler has nothing to warn of, what ends the kernel of a product is never stored, and
    the same words give the same file."""
    told = quantized(capsys)
    first = Path(told["output"]).read_bytes()
    assert quantized(capsys) == told
    assert Path(told["output"]).read_bytes() == first
    made = load_model(told["output"])
    graph, names = translate(made, MemoryStore())
    assert products_in_floats_line(optimize(graph).refusals, names) == ""
    read = {name for node in made.graph.node for name in node.input}
    products = [node for node in made.graph.node if node.op_type in ("Conv", "Gemm")]
    assert {name.endswith("_dequantized") for node in products for name in node.input} == {True}
    assert {"x", "r0", "r1", "sum", "gated", "both"} <= read
    assert not {"c0", "c1", "c2", "c3", "c4", "gate"} & {
        node.input[0] for node in made.graph.node if node.op_type == "QuantizeLinear"
    }


@pytest.mark.broad
@pytest.mark.usefixtures("folder")
def test_a_node_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the operands that it had, and is told with the reason."""
    told = quantized(capsys, "--keep", "node c[34]", "--ranges", "minmax", "-o", "kept.onnx")
    reason = "--keep names it"
    assert told["left_out"] == [{"node": f"node c{n}", "reason": reason} for n in (3, 4)]
    made = {node.name: node for node in load_model("kept.onnx").graph.node}
    assert list(made["node c3"].input) == ["mean", "w8", "w9"]


def test_normalised_numbers_stay_floats() -> None:
    """Of a block of a transformer the products read integers; what the normalisation and the
    softmax read, and the sum that goes past them, are no integers."""
    layers = Layers()
    layers.stored |= {"one": np.ones(8, np.float32), "scale": np.array(0.35, np.float32)}
    normal = layers.add("normal", "LayerNormalization", ["x", "one"])
    q, k, v = (layers.add(name, "MatMul", [normal, layers.weights(8, 8)]) for name in "qkv")
    turned = layers.add("turned", "Transpose", [k], perm=[0, 2, 1])
    scores = layers.add("scores", "Mul", [layers.add("qk", "MatMul", [q, turned]), "scale"])
    mixed = layers.add("mixed", "MatMul", [layers.add("part", "Softmax", [scores]), v])
    past = layers.add(
        "past", "Add", [layers.add("o", "MatMul", [mixed, layers.weights(8, 8)]), "x"]
    )
    again = layers.add("again", "LayerNormalization", [past, "one"])
    layers.add("y", "Add", [layers.add("m", "MatMul", [again, layers.weights(8, 8)]), past])
    model = make_model(
        layers.nodes, [tensor("x", [1, 5, 8])], [tensor("y", [1, 5, 8])], layers.stored
    )
    plan = choose_tensors(model)
    assert [layer.name for layer in plan.layers] == [
        f"node {name}" for name in ("q", "k", "v", "qk", "mixed", "o", "m")
    ]
    assert list(plan.roots) == ["normal", "q", "k", "v", "turned", "part", "mixed", "again"]
    assert plan.roots["turned"] == "k"


def test_ranges() -> None:
    """All numbers, all but the outermost, or the least squared error: each is what brute force
    finds, 0 is exact, and a few large numbers do not cost the others their digits."""
    random = np.random.default_rng(8)
    numbers = np.concatenate([random.standard_normal(200_000), [90.0]]).astype(np.float32)
    seen = Range()
    assert seen.widen(numbers[:1000])
    assert seen.widen(numbers[1000:])
    seen.count_parts(numbers)
    lost: dict[str, float] = {}
    for name, method in METHODS.items():
        low, high = method(seen)
        found = parameters(low, high)
        assert 0 <= found.zero <= 255
        codes = np.clip(np.rint(numbers / found.scale) + found.zero, 0, 255) - found.zero
        lost[name] = float(((codes * found.scale - numbers) ** 2)[:-1].mean())
        assert seen.low <= low <= 0 <= high <= seen.high
    assert METHODS["minmax"](seen) == (numbers.min(), numbers.max())
    assert METHODS["percentile"](seen)[1] < 10
    assert lost["percentile"] < lost["mse"] < lost["minmax"]
    assert parameters(0.0, 0.0).scale == 1
    assert not seen.widen(np.array([np.nan], np.float32))


def test_rounded_weights() -> None:
    """Each number is within half a step; a channel without numbers keeps its bias, and one whose
    bias is far larger than its weights, too."""
    random = np.random.default_rng(9)
    weights = random.standard_normal((4, 3, 2, 2)).astype(np.float32)
    weights[1], weights[2] = 0, weights[2] * np.float32(1e-12)
    bias: Array = np.array([0.5, -7.0, 3.0, 0.0], np.float32)
    made = channel_weights(weights, 0, 0.02, bias)
    steps = made.scales.reshape(4, 1, 1, 1).astype(np.float64)
    assert (np.abs(made.integers * steps - weights) <= steps * 0.5001).all()
    assert np.abs(made.integers[[0, 3]]).max((1, 2, 3)).tolist() == [127, 127]
    assert made.bias is not None
    found = made.bias * made.bias_scales.astype(np.float64)
    assert np.allclose(found, bias, rtol=1e-6, atol=0.02 * made.scales.max())
    assert np.allclose(found[1:3], bias[1:3], rtol=1e-6)


@pytest.mark.sweep(18)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected --calibrate, for activations by their ranges"),
        (["--calibrate", "calls", "--block", "32"], "it belongs to --weights"),
        (
            ["--calibrate", "calls", "--weights", "int8", "--ranges", "mse"],
            "it belongs to --calibrate alone",
        ),
        (["--calibrate", "empty"], "expected files that end in .npz, one for each call, got none"),
        (["--calibrate", "absent.npz"], "absent.npz"),
        (["--calibrate", "other"], "other/0.npz: "),
        (["--calibrate", "shape"], "shape/0.npz: "),
        (["--calibrate", "nan"], "got NaN or infinity for the inputs of nan/0.npz"),
        (["--calibrate", "none"], "it has no elements in any of the calls"),
        (["--calibrate", "calls", "--keep", "*"], "node c0: --keep names it"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_refusals(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs that the model does not take, that say nothing, and words that do not go together, are
    errors of the user; nothing is written."""
    shape = (2, 3, 12, 12)
    arrays = {
        "other": {"z": np.zeros(shape, np.float32)},
        "shape": {"x": np.zeros((2, 4, 12, 12), np.float32)},
        "nan": {"x": np.full(shape, np.nan, np.float32)},
        "none": {"x": np.zeros((0, *shape[1:]), np.float32)},
    }
    Path("empty").mkdir()
    for name, inputs in arrays.items():
        Path(name).mkdir()
        np.savez(Path(name) / "0.npz", **inputs)  # type: ignore[arg-type]  # of its option
    assert main(["quantize", "m.onnx", *words]) == 1
    assert told in capsys.readouterr().err
    assert not Path("m.int8.onnx").exists()


def _written(model: ModelProto, limit: float) -> ModelProto:
    """Quantized as if each tensor had one range, and checked by ONNX."""
    plan = choose_tensors(model)
    found = {name: parameters(-limit, limit) for name in plan.roots.values()}
    made = write_integers(model, plan, found, signed=False)
    onnx.checker.check_model(made, full_check=True)  # pyright: ignore[reportUnknownMemberType]  # half typed
    return made


def test_old_models_are_brought_into_a_form_that_has_scales_per_channel() -> None:
    """Opset 11, weights in Constant nodes, a name that a new tensor would have: the same numbers
    but for rounding."""
    random = np.random.default_rng(5)
    w, bias = (random.standard_normal(shape).astype(np.float32) / 3 for shape in ((6, 5), (6,)))
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w)),
        helper.make_node("Identity", ["x"], ["x_quantized"]),
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], "layer", transB=1),
        helper.make_node("Add", ["h", "sum"], ["y"]),
        helper.make_node("ReduceSum", ["x_quantized"], ["sum"], axes=[1], keepdims=1),
    ]
    nodes = [*nodes[:3], nodes[4], nodes[3]]
    old = make_model(nodes, [tensor("x", [4, 5])], [tensor("y", [4, 6])], {"b": bias})
    old.opset_import[0].version = 11
    new = prepare_model(old)
    assert new.opset_import[0].version == 13
    assert prepare_model(new).SerializeToString() == new.SerializeToString()
    x = random.standard_normal((4, 5)).astype(np.float32)
    written = _written(new, 3.0)
    written.opset_import[0].version = 19  # the reference knows no older scales per channel
    runs: list[Any] = [ReferenceEvaluator(model) for model in (old, written)]
    expected, got = (run.run(None, {"x": x})[0] for run in runs)
    assert 0 < np.abs(got - expected).max() < 0.06


def test_what_is_no_layer_is_told() -> None:
    """Transposed convolutions, weights that an input gives, computed ones, scaled products; weights
    that two layers read are rounded for each."""
    layers = Layers()
    w = layers.weights(8, 8)
    layers.add("first", "MatMul", ["x", w])
    layers.add("second", "Gemm", ["first", w])
    layers.add("scaled", "Gemm", ["second", w], alpha=0.5)
    layers.add("turned", "Transpose", [w])
    layers.add("computed", "MatMul", ["scaled", "turned"])
    layers.add("given", "Gemm", ["computed", "x"])
    layers.add("image", "Unsqueeze", ["given", layers.whole(0, 1)])
    layers.add("y", "ConvTranspose", ["image", layers.weights(1, 2, 3, 3)])
    model = make_model(
        layers.nodes, [tensor("x", [8, 8])], [tensor("y", [1, 2, 10, 10])], layers.stored
    )
    plan = choose_tensors(model)
    assert [layer.name for layer in plan.layers] == ["node first", "node second"]
    assert dict(plan.left) == {
        "node scaled": "a Gemm that is transposed or scaled",
        "node computed": "its weights are computed from others",
        "node given": "its weights are computed when the model runs",
        "node y": "it has no kernel for integers",
    }
    made = _written(model, 9.0)
    read = {name for node in made.graph.node for name in node.input}
    assert len({name for name in read if name.startswith(w) and "dequantized" in name}) == 2
