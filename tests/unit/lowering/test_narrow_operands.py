"""Dequantized integers that elementwise ops read stay integers in the bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.harness.end_to_end_harness import make_model, tensor
from tests.unit.passes.test_passes_constant_expression import Weights

import ingot
import ingot_runtime
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constants.constant_expression import constant_values

SIZE = 100  # 40,000 bytes of f32
INPUTS = [TensorType("f32", (1, SIZE, SIZE))]


def dequantized(weights: Weights, size: int = SIZE, dtype: str = "u8") -> list[int]:
    """Integers, the same in f32, less a zero point, by a scale for each row."""
    codes = weights.constant("codes", dtype, 1, size, size)
    wide = weights.add("cast", (codes,), dtype="f32")
    moved = weights.add("sub", (wide, weights.builder.scalar("f32", 7.0)))
    return [codes, wide, moved, weights.add("mul", (moved, weights.constant("s", "f32", size, 1)))]


def read(weights: Weights, value: int) -> int:
    """A value that a run reads beside an input."""
    return weights.add("add", (0, value))


def test_kernels_widen_what_they_read() -> None:
    """The integers are stored, once for two readers with scales of their own."""
    weights = Weights(INPUTS)
    codes, *widened = dequantized(weights)
    other = weights.add("mul", (widened[0], weights.builder.scalar("f32", 0.5)))
    found = constant_values(
        weights.builder.finish([read(weights, widened[-1]), read(weights, other)])
    )
    assert codes in found
    assert found.isdisjoint((*widened, other))


Made = Callable[[Weights], tuple[int, int]]


def _returned(weights: Weights) -> tuple[int, int]:
    value = dequantized(weights)[-1]
    return value, value


def _multiplied(weights: Weights) -> tuple[int, int]:
    value = dequantized(weights)[-1]
    return value, weights.add("matmul", (value, 0))


def _of_another_constant(weights: Weights) -> tuple[int, int]:
    value = dequantized(weights)[-1]
    twice = weights.add("concat", (value, value), axis=0)
    return value, weights.add("add", (read(weights, value), twice))


def _small(weights: Weights) -> tuple[int, int]:
    value = dequantized(weights, 1)[-1]
    return value, read(weights, value)


def _of_floats(weights: Weights) -> tuple[int, int]:
    value = dequantized(weights, dtype="f64")[-1]
    return value, read(weights, value)


def _with_more_ops(weights: Weights) -> tuple[int, int]:
    value = weights.add("abs", (weights.add("neg", (dequantized(weights)[-1],)),))
    return value, read(weights, value)


@pytest.mark.parametrize(
    "made", [_returned, _multiplied, _of_another_constant, _small, _of_floats, _with_more_ops]
)
def test_what_is_a_constant_all_the_same(made: Made) -> None:
    """What somebody wants as a constant, what is small, was no byte or takes longer."""
    weights = Weights(INPUTS)
    value, result = made(weights)
    assert value in constant_values(weights.builder.finish([result]))


def quantized_masks(layers: int, size: int) -> ModelProto:
    """One mask of bytes, which each layer adds with a scale of its own."""
    constants: dict[str, Any] = {
        "mask": np.arange(size * size, dtype=np.uint8).reshape(1, size, size)
    }
    nodes: list[NodeProto] = []
    for layer in range(layers):
        constants |= {f"scale{layer}": np.float32(0.1 + layer), f"zero{layer}": np.uint8(layer)}
        nodes += [
            helper.make_node(
                "DequantizeLinear", ["mask", f"scale{layer}", f"zero{layer}"], [f"mask{layer}"]
            ),
            helper.make_node("Add", [f"x{layer}", f"mask{layer}"], [f"sum{layer}"]),
            helper.make_node("Softmax", [f"sum{layer}"], [f"x{layer + 1}"]),
        ]
    inputs = [tensor("x0", [4, size, size], TensorProto.FLOAT)]
    return make_model(nodes, inputs, [tensor(f"x{layers}", None)], constants)


def test_bundles_are_as_small_as_the_model(tmp_path: Path) -> None:
    """Eight layers share the bytes of a mask, beside which there is little; the results are those of
    the reference."""
    model, path = quantized_masks(8, 512), tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    assert path.stat().st_size < model.ByteSize() + 200_000
    x = np.random.default_rng(1).normal(size=(4, 512, 512)).astype(np.float32)
    (got,) = ingot_runtime.load(path).run({"x0": x}).values()
    reference: Any = ReferenceEvaluator(model)
    (want,) = reference.run(None, {"x0": x})
    np.testing.assert_allclose(got, want, 1e-4, 1e-7)
