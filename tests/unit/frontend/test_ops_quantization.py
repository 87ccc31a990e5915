"""Quantized ops, from ONNX to machine code, beside ONNX's reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor

U8, I8, I32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32


def values(*shape: int) -> Array:
    """Random numbers with some that saturate."""
    return (np.random.default_rng(0).standard_normal(shape) * 40).astype(np.float32)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("zero", [np.uint8(7), np.int8(-3), np.uint16(900), np.int16(5)])
def test_round_trip(tmp_path: Path, zero: Any) -> None:
    """Quantized and back, per tensor, for every integer type."""
    dtype = {"uint8": U8, "int8": I8, "uint16": TensorProto.UINT16, "int16": TensorProto.INT16}[
        zero.dtype.name
    ]
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    tables: dict[str, Array] = {"s": np.array(0.3, np.float32), "z": np.asarray(zero)}
    model = make_model(
        nodes, [tensor("x", [3, 50])], [tensor("q", None, dtype), tensor("y", None)], tables
    )
    check_model(model, [{"x": values(3, 50)}], tmp_path, 1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_per_axis(tmp_path: Path, axis: int) -> None:
    """A scale for every slice along an axis."""
    x = values(4, 5, 6)
    scales = np.linspace(0.1, 0.9, x.shape[axis]).astype(np.float32)
    tables: dict[str, Array] = {"s": scales, "z": np.arange(x.shape[axis], dtype=np.uint8)}
    nodes = [
        node("QuantizeLinear", "x s z", "q", axis=axis),
        node("DequantizeLinear", "q s z", "y", axis=axis),
    ]
    model = make_model(
        nodes, [tensor("x", x.shape)], [tensor("q", None, U8), tensor("y", None)], tables
    )
    check_model(model, [{"x": x}], tmp_path, 1e-6)


def test_dynamic_range(tmp_path: Path) -> None:
    """The scale comes from the tensor."""
    outputs = [tensor("q", None, U8), tensor("s", None), tensor("z", None, U8)]
    model = make_model(
        [node("DynamicQuantizeLinear", "x", "q s z")], [tensor("x", [6, 7])], outputs
    )
    check_model(model, [{"x": values(6, 7)}, {"x": abs(values(6, 7))}], tmp_path, 1e-6)


def test_products(tmp_path: Path) -> None:
    """Integer products and convolutions are exact, and quantized again they are those of the
    reference."""
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(0, 256, (9, 33)).astype(np.uint8),
        rng.integers(0, 256, (33, 17)).astype(np.uint8),
    )
    x, w = (
        rng.integers(0, 256, (1, 3, 7, 7)).astype(np.uint8),
        rng.integers(0, 256, (5, 3, 3, 3)).astype(np.uint8),
    )
    scale, zero = np.array(0.02, np.float32), np.array(120, np.uint8)
    nodes = [
        node("MatMulInteger", "a b z z", "p"), node("ConvInteger", "x w z z", "c"),
        node("QLinearMatMul", "a s z b s z t z", "q"), node("QLinearConv", "x s z w s z t z", "d"),
    ]  # fmt: skip
    inputs = [tensor("a", a.shape, U8), tensor("x", x.shape, U8)]
    outputs = [
        tensor("p", None, I32),
        tensor("c", None, I32),
        tensor("q", None, U8),
        tensor("d", None, U8),
    ]
    tables: dict[str, Array] = {
        "b": b,
        "w": w,
        "s": scale,
        "z": zero,
        "t": np.array(0.9, np.float32),
    }
    check_model(make_model(nodes, inputs, outputs, tables), [{"a": a, "x": x}], tmp_path)
