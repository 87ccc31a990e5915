"""Elementwise ops whose sizes only the call compares: each operand whole or stretched along each
axis, beside empty ones, give what NumPy gives, and lanes where nothing is stretched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import Builder, compile_graph, f32

import ingot
import ingot_runtime
from ingot_compiler.ir.dims import symbol

_DTYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "f64": TensorProto.DOUBLE,
    "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8,
}
_SHAPES = ((0, 3), (1, 1), (5, 1), (3, 2), (2, 17), (3, 70), (2, 3, 5), (2, 1, 33), (1, 2, 3, 9))


def _shapes(whole: tuple[int, ...], seed: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Shapes of three operands that broadcast to ``whole``: some of all choices of axes."""
    random = np.random.default_rng(seed)
    choices = list(product(*((1, size) for size in whole)))
    yield whole, whole, whole
    for own in choices:
        yield own, whole, choices[random.integers(len(choices))]
        yield whole, own, own


@pytest.mark.sweep(3)
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_operands_of_open_sizes(tmp_path: Path, target: str, dtype: str, rank: int) -> None:
    """A chain of three operands and a choice by one of them, each axis with a name of its own."""
    proto, names = _DTYPES[dtype], ("a", "b", "c")
    shapes = [[f"{name}{axis}" for axis in range(rank)] for name in names]
    inputs = [tensor(name, shape, proto) for name, shape in zip(names, shapes, strict=True)]
    nodes = [
        node("Add", "a b", "sum"),
        node("Add", "sum c", "total"),
        node("Equal", "a b", "same"),
        node("Where", "same c b", "chosen"),
    ]
    model = make_model(nodes, inputs, [tensor("total", None, proto), tensor("chosen", None, proto)])
    ingot.compile(model, targets=[target]).save(tmp_path / "model.ingot")
    session = ingot_runtime.load(str(tmp_path / "model.ingot"))
    for seed, whole in enumerate(shape for shape in _SHAPES if len(shape) == rank or rank == 1):
        for each in _shapes(whole[-1:] if rank == 1 else whole, seed):
            a, b, c = (_numbers(shape, dtype, seed) for shape in each)
            got = session.run({"a": a, "b": b, "c": c})
            np.testing.assert_array_equal(got["total"], a + b + c)
            np.testing.assert_array_equal(got["chosen"], np.where(a == b, c, b))


def _numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Whole numbers whose sums are exact in every type."""
    kind = {"f32": "f4", "f16": "f2", "f64": "f8", "i64": "i8", "u8": "u1"}[dtype]
    return np.random.default_rng(seed).integers(0, 4, shape).astype(kind)


def test_images_of_open_sizes_are_read_as_planes() -> None:
    """One form has all axes as one, one those of an image, and one is for what is left; where rows
    are all that there is, there is one form."""
    sizes = [[symbol(f"{name}{axis}") for axis in range(4)] for name in "ab"]
    builder = Builder([f32(*shape) for shape in sizes])
    programs = compile_graph(builder.finish([builder.op("add", 0, 1)])).programs
    assert [len(program.scalars) for program in programs] == [8, 8, 8]
    builder = Builder([f32(symbol("a")), f32(symbol("b"))])
    assert len(compile_graph(builder.finish([builder.op("add", 0, 1)])).programs) == 1
