"""What passes through a narrow element type is a number of that type, also where one kernel
computes what is before and behind it.

In: chains of a Cast, an op and a Cast back. Out: nothing. Not done here: how near a result is
(``test_half_norms`` and others).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.c_source import CModel, export
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import node, run_all_ways, tensor
from tests.ptx.fake_driver import installed

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device

HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
SHAPE = (1, 4, 8, 8)
ELEMENTWISE = {
    name: op
    for name in [
        "Abs",
        "Ceil",
        "Cos",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sin",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tanh",
    ]
    for op in (node(name, "h", "v"),)
} | {name: node(name, "h w", "v") for name in ("Add", "Div", "Max", "Mul", "Pow", "PRelu", "Sub")}
ANCHORS = {
    "AveragePool": node("AveragePool", "h", "v", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "Conv": node("Conv", "h k b", "v", pads=[1, 1, 1, 1]),
    "ConvTranspose": node("ConvTranspose", "h k b", "v", pads=[1, 1, 1, 1]),
    "CumSum": node("CumSum", "h axis", "v"),
    "GlobalAveragePool": node("GlobalAveragePool", "h", "v"),
    "InstanceNormalization": node("InstanceNormalization", "h b b", "v"),
    "LayerNormalization": node("LayerNormalization", "h row", "v"),
    "LogSoftmax": node("LogSoftmax", "h", "v"),
    "MatMul": node("MatMul", "h m", "v"),
    "ReduceMean": node("ReduceMean", "h axes", "v"),
    "ReduceSum": node("ReduceSum", "h axes", "v"),
    "Resize": node("Resize", "h - s", "v", mode="linear"),
    "Softmax": node("Softmax", "h", "v"),
}
CHAINS = {**ELEMENTWISE, **ANCHORS}


def chains(dtype: str, *, of_constants: bool = False) -> onnx.ModelProto:
    """One output for each op: x, or a constant, made narrow, the op, made f32, zeros added."""
    half, kind = HALVES[dtype], helper.np_dtype_to_tensor_dtype(np.dtype(HALVES[dtype]))
    random = np.random.default_rng(2)
    shapes = {"w": (4, 1, 1), "k": (4, 4, 3, 3), "b": (4,), "row": (8,), "m": (8, 8)}
    tensors = [
        numpy_helper.from_array(random.uniform(0.5, 2, shape).astype(half), name)
        for name, shape in shapes.items()
    ]
    plain = {"axis": np.array(3), "axes": np.array([3]), "s": np.array([1, 1, 1.5, 2], np.float32)}
    tensors += [numpy_helper.from_array(array, name) for name, array in plain.items()]
    nodes = [node("Cast", "x", "h", to=kind)]
    if of_constants:
        tensors.append(numpy_helper.from_array(given()["x"], "c"))
        nodes = [node("Cast", "c", "h", to=kind)]
    for name, chain in CHAINS.items():
        own = onnx.NodeProto()
        own.CopyFrom(chain)
        own.output[0] = f"{name}.v"
        nodes += [
            own,
            node("Cast", f"{name}.v", f"{name}.f", to=TensorProto.FLOAT),
            node("Add", f"{name}.f z", name),
        ]
    outputs = [tensor(name, None) for name in CHAINS]
    inputs = [tensor("z", [1])] if of_constants else [tensor("x", SHAPE), tensor("z", [1])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def given() -> dict[str, Array]:
    """Positive numbers that no half has, and a zero."""
    x = np.random.default_rng(1).uniform(0.1, 3, SHAPE).astype(np.float32)
    return {"x": x, "z": np.zeros(1, np.float32)}


def check(found: dict[str, Array], dtype: str) -> None:
    """Every output is made of numbers of the narrow type, and of many."""
    for name, array in found.items():
        narrow = array.astype(HALVES[dtype]).astype(np.float32)
        assert (array == narrow).all(), (name, int((array != narrow).sum()), array.size)
        assert np.isfinite(array).all(), name
    assert len(found) == len(CHAINS)
    assert len(np.unique(found["Exp"])) > 10


@pytest.mark.broad
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_on_the_host(dtype: str, target: str, tmp_path: Path) -> None:
    """aot, vm and the loader in C, with and without instructions for halves."""
    ingot.compile(chains(dtype), targets=[target]).save(tmp_path / "m")
    check(run_all_ways(tmp_path / "m", [given()])[0], dtype)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("dtype", HALVES)
def test_of_constants(dtype: str, tmp_path: Path) -> None:
    """Where what is narrow is computed when the model is compiled."""
    ingot.compile(chains(dtype, of_constants=True)).save(tmp_path / "m")
    check(run_all_ways(tmp_path / "m", [{"z": given()["z"]}])[0], dtype)


@pytest.fixture
def gpu() -> Iterator[None]:
    """A GPU that a program of Python stands for."""
    with installed():
        yield


@pytest.mark.broad
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param("opencl", "x86-64-v2", marks=pytest.mark.opencl),
        ("cuda", "x86-64-v3"),
    ],
)
def test_on_devices(dtype: str, kind: str, target: str) -> None:
    """By the text that their drivers compile."""
    made = ingot.compile(chains(dtype), targets=[target], devices={"acc": kind}, place={"*": "acc"})
    with ingot_runtime.load(made.to_bytes()) as session:
        check(dict(session.run(given())), dtype)
        assert session.device_counts().launches["acc"] > 0


@pytest.mark.broad
@pytest.mark.parametrize("dtype", HALVES)
def test_as_c_source(dtype: str, tmp_path: Path) -> None:
    """As a model in C."""
    (tmp_path / "m.onnx").write_bytes(chains(dtype).SerializeToString())
    check(CModel(export(tmp_path / "m.onnx", tmp_path / "c", "--name", "m")).run(given()), dtype)


@pytest.mark.broad
@pytest.mark.parametrize("dtype", HALVES)
def test_check_and_selftest_pass(dtype: str, tmp_path: Path) -> None:
    """The interpreter of the graph, which rounds every value, agrees; a bundle proves itself."""
    (tmp_path / "m.onnx").write_bytes(chains(dtype).SerializeToString())
    line = ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.ingot"), "-q"]
    assert main([*line, "--check", "--selftest", "2"]) == 0
    assert device(["selftest", str(tmp_path / "m.ingot")]) == 0


@pytest.mark.sweep(60)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_narrow_integers_wrap_around(dtype: str, tmp_path: Path) -> None:
    """Sums, differences, products and negatives of narrow integers, made wide in one kernel."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    signed = np.dtype(dtype).kind == "i"
    ops = {"Add": "h h", "Sub": "k h", "Mul": "h h", **({"Neg": "h", "Abs": "h"} if signed else {})}
    nodes = [node("Cast", "x", "h", to=kind)]
    for op, operands in ops.items():
        nodes += [
            node(op, operands, f"{op}.v"),
            node("Cast", f"{op}.v", f"{op}.f", to=TensorProto.INT64),
            node("Add", f"{op}.f x", op),
        ]
    graph = helper.make_graph(
        nodes, "g", [tensor("x", [70], TensorProto.INT64)],
        [tensor(op, None, TensorProto.INT64) for op in ops],
        [numpy_helper.from_array(np.array(100, dtype), "k")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    ingot.compile(model).save(tmp_path / "m")
    x = np.random.default_rng(3).integers(-70000, 70000, 70)
    x[0] = np.iinfo(dtype).min
    with np.errstate(all="ignore"):
        h = x.astype(dtype)
        right = {
            "Add": h + h,
            "Sub": np.array(100, dtype) - h,
            "Mul": h * h,
            "Neg": -h,
            "Abs": abs(h),
        }
    in_c = CModel(export(tmp_path / "m.onnx", tmp_path / "c", "--name", "m")).run({"x": x})
    for found in (run_all_ways(tmp_path / "m", [{"x": x}])[0], in_c):
        for op, array in found.items():
            np.testing.assert_array_equal(array, right[op].astype(np.int64) + x, op)
