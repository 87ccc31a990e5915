"""Products of each row by the matrix of its group: kernels against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import (
    Builder,
    Compiled,
    check_graph,
    compile_graph,
    f32,
    normal,
)

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.targets.target import Target

_SHAPES = ((3, 1, 24, 5), (4, 7, 40, 33), (2, 70, 100, 130), (5, 3, 300, 272), (1, 4, 8, 16))
"""Groups, rows, depth, columns."""


def _groups(kind: str, rows: int, count: int) -> Array:
    rng = np.random.default_rng(rows)
    if kind == "one":
        return np.full(rows, count - 1)
    if kind == "outside":
        return rng.integers(-2, count + 3, rows)
    return rng.integers(0, count, rows)


def _graph(
    shape: tuple[int, int, int, int], *, constant: bool, is_open: bool
) -> tuple[Builder, int]:
    """A product, a number for each row and one for each column, an activation."""
    count, rows, depth, columns = shape
    size: Dim = symbol("rows") if is_open else rows
    inputs = [f32(size, depth), TensorType("i64", (size,)), f32(size, 1)]
    if not constant:
        inputs.append(f32(count, depth, columns))
    builder = Builder(inputs)
    b = builder.constant(normal(2, count, depth, columns)) if constant else 3
    scaled = builder.op("mul", builder.op("grouped_matmul", 0, 1, b), 2)
    bias = builder.constant(normal(3, columns))
    return builder, builder.op("relu", builder.op("add", scaled, bias))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("kind", ["any", "one", "outside"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.sweep(60)
def test_kernels_give_what_the_interpreter_does(
    target: Target, shape: tuple[int, int, int, int], kind: str, *, constant: bool, is_open: bool
) -> None:
    """Groups of no, one and many rows, columns beyond whole panels, what follows in the kernel."""
    builder, result = _graph(shape, constant=constant, is_open=is_open)
    count, rows, depth, columns = shape
    feeds = [normal(0, rows, depth), _groups(kind, rows, count), normal(1, rows, 1)]
    if not constant:
        feeds.append(normal(2, count, depth, columns))
    check_graph(builder, (result,), feeds, targets=[target])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("has_zero", [True, False])
@pytest.mark.parametrize("rows", [1, 9, 200])
@pytest.mark.sweep(60)
def test_matrices_in_blocks(
    target: Target, bits: int, rows: int, *, rounded: bool, has_zero: bool
) -> None:
    """Matrices that end in the middle of a panel, with and without zero points."""
    count, block, depth, columns = 3, 32, 96, 37
    rng = np.random.default_rng(bits + rows)
    builder = Builder([f32(rows, depth), TensorType("i64", (rows,))])
    per_block = count, columns, depth // block
    numbers = rng.integers(0, 256, (count, columns, depth * bits // 8)).astype(np.uint8)
    weights = [builder.constant(numbers), builder.constant(normal(1, *per_block))]
    if has_zero:
        zero = rng.integers(0, 1 << bits, per_block).astype(np.uint8)
        weights.append(builder.constant(zero))
    table = {"bits": bits, "block": block, "signed": False, "rounded": rounded}
    product = builder.op("grouped_matmul_blocks", 0, 1, *weights, **table)
    result = builder.op("silu", product)
    feeds = [normal(0, rows, depth), _groups("outside", rows, count)]
    check_graph(builder, (result,), feeds, 2e-4, targets=[target])


@pytest.mark.parametrize("side", ["left", "right"])
def test_matrices_that_indices_pick_are_not_copied(tmp_path: Path, side: str) -> None:
    """As PyTorch exports mixtures of experts, with an open number of tokens: the result of ONNX's
    reference, and indices from the end."""
    weights = normal(4, 6, 64, 96)
    moved = {"w": weights if side == "right" else weights.transpose(0, 2, 1).copy()}
    operands = ("row", "matrix") if side == "right" else ("matrix", "row")
    nodes = [
        node("Gather", "w i", "matrix", axis=0),
        node("Unsqueeze", "x axis", "row"),
        node("MatMul", " ".join(operands), "product"),
        node("Relu", "product", "y"),
    ]
    axis = np.array([1 if side == "right" else 2])
    inputs = [tensor("x", ["pairs", 64]), tensor("i", ["pairs"], TensorProto.INT64)]
    model = make_model(nodes, inputs, [tensor("y", None)], {**moved, "axis": axis})
    kinds = {step.group.kind for step in launches_of(_compiled(model).fused)}
    assert "grouped_matmul" in kinds
    feeds = [
        {"x": normal(rows, rows, 64), "i": np.random.default_rng(rows).integers(-6, 6, rows)}
        for rows in (1, 9, 40)
    ]
    check_model(model, feeds, tmp_path)


def _compiled(model: ModelProto) -> Compiled:
    return compile_graph(translate(model, MemoryStore())[0])
