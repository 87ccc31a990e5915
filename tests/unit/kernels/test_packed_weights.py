"""Weights lie for every CPU target, and for every number of rows, in the same way, so that a bundle
stores them once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import HOST_ALONE, normal
from tests.unit.frontend.test_ops_recurrent import parameters, quantized

from ingot_compiler.backends.host.hooks import device_rules
from ingot_compiler.ir.graph import Graph
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.placement.place import place

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64")
CONVOLUTION = make_model(
    [node("Conv", "x w", "y", group=2)],
    [tensor("x", ["n", 16, 9, 9])],
    [tensor("y", None)],
    {"w": normal(0, 80, 8, 3, 3)},
)
PRODUCTS = make_model(
    [node("MatMul", "x w", "y"), node("MatMul", "one w", "z")],
    [tensor("x", [100, 24]), tensor("one", [1, 24])],
    [tensor("y", None), tensor("z", None)],
    {"w": normal(0, 24, 50)},
)
INTEGERS = make_model(
    [node("MatMulInteger", "x w", "y")],
    [tensor("x", [10, 24], 3)],
    [tensor("y", None, 6)],
    {"w": np.ones((24, 50), np.int8)},
)
DOUBLES = make_model(
    [node("MatMul", "x w", "y")],
    [tensor("x", [10, 24], 11)],
    [tensor("y", None, 11)],
    {"w": np.ones((24, 50))},
)
RECURRENT = make_model(
    [node("LSTM", "x w r b", "y", hidden_size=20)],
    [tensor("x", [5, 3, 9])],
    [tensor("y", None)],
    parameters("LSTM", 1, 9, 20),
)

QUANTIZED = make_model(
    [
        node(
            "DynamicQuantizeLSTM",
            "x w r b - - - - w_scale w_zero r_scale r_zero",
            "y",
            domain="com.microsoft",
            hidden_size=18,
        )
    ],
    [tensor("x", [5, 3, 9])],
    [tensor("y", None)],
    quantized(1, 9, 18),
)
QUANTIZED.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def packed(model: ModelProto, target: str) -> set[Graph]:
    """What the constant buffers of a model hold."""
    placed = place(optimize(translate(model, MemoryStore())[0]), HOST_ALONE)
    return set(fuse(placed, [device_rules(target)]).constants)


@pytest.mark.parametrize("model", [CONVOLUTION, PRODUCTS, INTEGERS, DOUBLES, RECURRENT, QUANTIZED])
def test_every_target_reads_the_same_bytes(model: ModelProto) -> None:
    """Vectors of 4, 8 and 16 lanes, 16 and 32 registers: one packing."""
    found = [packed(model, target) for target in TARGETS]
    assert found[0]
    assert all(constants == found[0] for constants in found)


def test_one_weight_is_packed_once_for_any_number_of_rows() -> None:
    """A product of one row and one of a hundred have other register tiles and the same panels."""
    assert len(packed(PRODUCTS, "x86-64-v4")) == 1
