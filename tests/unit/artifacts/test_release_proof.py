"""What ``--selftest`` keeps is what every right bundle gives, and nothing else: models of every
kind prove themselves on every level, and a bundle that fails its own calls gets no name and no
signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness import quantized_models as models
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.end_to_end_harness import make_model, tensor
from tests.harness.ml_harness import classic_trees, ml_model, ml_node
from tests.harness.quantized_models import Scheme
from tests.json_schemas import checked
from tests.tiny_int8 import to_int8
from tests.tiny_models import TINY
from tests.unit.runtime.test_signatures import Owner

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.check import output_limits, selftest
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.quantizer.weight_layers import load_model
from ingot_runtime.command import main as device
from ingot_runtime.format import header as head
from ingot_runtime.format.selftest import Case, decode_case

ARCHITECTURES = Path(__file__).parents[2] / "models"
TARGETS = [str(target) for target in RUNNABLE]


def half_network(dtype: int) -> ModelProto:
    """A product, a norm, a softmax in 16 bits."""
    random = np.random.default_rng(4)
    w = numpy_helper.from_array(random.normal(0, 0.3, (24, 40)).astype(np.float32), "w32")
    nodes = [
        helper.make_node("Cast", ["w32"], ["w"], to=dtype),
        helper.make_node("MatMul", ["x", "w"], ["h"], "product"),
        helper.make_node("LayerNormalization", ["h", "g"], ["n"], "norm"),
        helper.make_node("Softmax", ["n"], ["y"], "softmax"),
        helper.make_node("Cast", ["ones"], ["g"], to=dtype),
    ]
    nodes.insert(0, nodes.pop())
    ones = numpy_helper.from_array(np.ones(40, np.float32), "ones")
    ends = [tensor("x", ("rows", 24), dtype)], [tensor("y", ("rows", 40), dtype)]
    graph = helper.make_graph(nodes, "half", *ends, [w, ones])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def strings() -> ModelProto:
    """Labels of integers, and of them labels of a computed class."""
    names = ["cat", "dog", "bird"]
    keys: dict[str, Any] = {
        "keys_int64s": [0, 1, 2],
        "values_strings": names,
        "default_string": "?",
    }
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], "best", axis=1, keepdims=0),
        helper.make_node("LabelEncoder", ["best"], ["y"], "names", domain="ai.onnx.ml", **keys),
    ]
    ends = [tensor("x", ("rows", 3))], [tensor("y", ("rows",), TensorProto.STRING)]
    graph = helper.make_graph(nodes, "strings", *ends)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def trees() -> ModelProto:
    """A forest of three classes."""
    columns = classic_trees(6, 4, "target", 3, 1)
    node = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=3, **columns)
    return ml_model([node], {"x": np.zeros((5, 4), np.float32)}, "y")


def deep(depth: int = 12) -> ModelProto:
    """Layers with a softmax between, quantized each: one integer at a tie is followed by others."""
    layers = models.Layers(Scheme())
    x = layers.requantized("x", 0.0193, 127)
    for _ in range(depth):
        y = layers.add("MatMul", [x, layers.weights(32, 32, axis=1)])
        y = layers.add("Mul", [layers.add("Softmax", [y], axis=-1), y])
        x = layers.requantized(layers.add("Add", [x, y]), 0.0213, 127)
    return make_model(layers.nodes, [tensor("x", ("rows", 32))], [tensor(x, None)], layers.stored)


def convolutions() -> ModelProto:
    """Quantized images: padded windows, a residual sum, a maximum, a concatenation."""
    layers = models.Layers(Scheme())
    x = layers.requantized("x", 0.0243, 119)
    y = layers.add("Conv", [x, layers.weights(8, 3, 3, 3), layers.bias(8)], pads=[1] * 4)
    y = layers.requantized(layers.add("Relu", [y]), 0.0287, 0)
    each = layers.add("Conv", [y, layers.weights(8, 1, 3, 3)], pads=[1] * 4, group=8)
    total = layers.requantized(layers.add("Add", [y, each]), 0.0613, 121)
    most = layers.add("MaxPool", [total], kernel_shape=[2, 2], pads=[1] * 4)
    both = layers.add("Concat", [most, most], axis=1)
    return layers.model(("batch", 3, 9, 10), layers.quantized(both, 0.0577, 121))


def _architecture(name: str, form: str = "static") -> ModelProto:
    return load_model(str(ARCHITECTURES / name / f"{form}.onnx"))


MODELS: dict[str, Callable[[], ModelProto]] = {
    "convolutions": convolutions,
    "integers": lambda: to_int8(TINY["resnet8"]()),
    "network": lambda: models.network(Scheme()),
    "attention": lambda: models.attention(Scheme(np.int8, skewed=True)),
    "dynamic": models.dynamic,
    "deep": deep,
    "f16": lambda: half_network(TensorProto.FLOAT16),
    "bf16": lambda: half_network(TensorProto.BFLOAT16),
    "resnet": lambda: _architecture("resnet"),
    "encoder": lambda: _architecture("bert", "dynamic"),
    "decoder": lambda: _architecture("llama"),
    "trees": trees,
    "strings": strings,
}


def compile_proved(model: ModelProto, folder: Path, *options: str) -> Path:
    """``compile --check --selftest 2`` for every level of this machine; where it went."""
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    path = folder / "m.ingot"
    words = ["compile", str(folder / "m.onnx"), "-o", str(path), "--selftest", "2", "--check"]
    targets = [word for target in TARGETS for word in ("--target", target)]
    assert main([*words, *targets, *options]) == 0
    return path


def cases(path: Path) -> list[Case]:
    """The calls that a bundle holds."""
    with opened(path) as source, ingot_runtime.load(path) as session:
        plan = session.loaded.plan
        return [decode_case(source.section(head.SELFTEST, at), plan, "") for at in (0, 1)]


@pytest.mark.broad
@pytest.mark.parametrize("kind", MODELS)
def test_models_of_every_kind_prove_themselves(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Checked against the interpreter, then by the calls that the bundle keeps, on every level, by
    main and by the vm."""
    path = compile_proved(MODELS[kind](), tmp_path, "--json")
    told = checked("compile", capsys.readouterr().out)
    assert told["check"]["passed"]
    assert told["selftest"]["targets"] == TARGETS
    assert told["selftest"]["targets_left_out"] == []
    for target in TARGETS:
        for executor in ("aot", "vm"):
            assert device(["selftest", str(path), "--variant", target, "--executor", executor]) == 0


@pytest.mark.sweep(60)
@pytest.mark.parametrize("kind", ["convolutions", "integers", "deep"])
def test_limits_follow_from_the_graph(kind: str, tmp_path: Path) -> None:
    """Nothing is allowed where all is integers and single roundings; where an average or a softmax
    decides about integers, some of what the network itself makes of that."""
    path = compile_proved(MODELS[kind](), tmp_path, "-q")
    for case in cases(path):
        ((tolerance, share),) = case.limits
        assert share == 0
        assert (tolerance == 0) == (kind == "convolutions")
        assert tolerance < 0.2


@pytest.mark.broad
@pytest.mark.parametrize("kind", ["convolutions", "deep"])
def test_another_result_is_found(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One element that is further away than the limit fails the proof: of integers, by one step."""
    path, changed = compile_proved(MODELS[kind](), tmp_path, "-q"), tmp_path / "changed.ingot"
    case = cases(path)[1]
    ((shape, content),), ((tolerance, _),) = case.outputs, case.limits
    with opened(path) as source:
        section = source.section(head.SELFTEST, 1)
        data = np.frombuffer(content, np.uint8 if kind == "convolutions" else np.float32).copy()
        largest = np.abs(data).max()
        data[7] += 1 if kind == "convolutions" else 1.01 * tolerance * largest
        assert section.count(bytes(content)) == 1
        forged = section.replace(bytes(content), data.tobytes())
        rewrite_bundle(source, Changes({(head.SELFTEST, 1): forged}), changed)
    assert shape
    assert device(["selftest", str(changed)]) == 4
    assert "call 1, output" in capsys.readouterr().out


def test_a_bundle_that_fails_gets_no_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of ``compile --selftest`` the file before stays; a release is not written, and so not
    signed."""
    keep = output_limits.steady

    def wrong(*given: Any) -> Any:
        return keep(*given) + 1

    (tmp_path / "m.onnx").write_bytes(deep(1).SerializeToString())
    (tmp_path / "m.ingot").write_bytes(b"earlier")
    monkeypatch.setattr(selftest, "steady", wrong)
    words = [
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "m.ingot"),
        "--selftest",
        "1",
    ]
    assert main(words) == 4
    told = capsys.readouterr().err
    assert "a bundle fails its own selftest" in told
    assert "call 0, output" in told
    assert (tmp_path / "m.ingot").read_bytes() == b"earlier"
    Owner(tmp_path, "alice", 1)
    (tmp_path / "ingot.toml").write_text(
        '[model.m]\nsource = "m.onnx"\n[bundle.b]\nmodel = "m"\n[export.shipped]\nbundle = "b"\n'
        'kind = "release"\noutput = "dist/shipped.ingot"\nselftest = 1\nsign = ["alice.pem"]\n'
    )
    assert main(["build", "-C", str(tmp_path)]) == 4
    assert "a bundle fails its own selftest" in capsys.readouterr().err
    assert not (tmp_path / "dist/shipped.ingot").exists()


def test_variants_of_other_machines_are_kept_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle for another architecture alone keeps its calls; the line says that they were not
    made."""
    (tmp_path / "m.onnx").write_bytes(deep(1).SerializeToString())
    words = [
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "m.ingot"),
        "--selftest",
        "2",
    ]
    foreign = "riscv64" if "aarch64" in TARGETS else "aarch64"
    assert main([*words, "--target", foreign]) == 0
    line = f"  kept 2 calls of the selftest; not run here: {foreign}"
    assert line in capsys.readouterr().out.splitlines()
