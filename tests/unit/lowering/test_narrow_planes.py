"""Planes that are turned, of which one side is an axis of an open size: few elements of it have
loops of their own, and all sizes give what the interpreter gives."""

from __future__ import annotations

import pytest
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, normal

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.loops.program import Transpose

TO_CHANNELS_LAST, TO_PLANES = (0, 2, 3, 1), (0, 3, 1, 2)


def _builder(permutation: tuple[int, ...], shape: tuple[Dim, ...], dtype: DType) -> Builder:
    """Rounded numbers are turned, and something is added that lies as the result does."""
    turned = tuple(shape[axis] for axis in permutation)
    return Builder([TensorType("f32", shape), TensorType(dtype, turned)])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("permutation", [TO_CHANNELS_LAST, TO_PLANES])
@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4, 5, 17])
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_images_of_open_sizes(permutation: tuple[int, ...], channels: int, dtype: DType) -> None:
    """Of no and of some channels, with less and more pixels than a unit has."""
    names = tuple(map(symbol, ("n", "a", "b", "c")))
    for sides in ((5, 7), (33, 40)):
        image = (2, channels, *sides) if permutation == TO_CHANNELS_LAST else (2, *sides, channels)
        x = normal(0, *image)
        other = normal(1, *(image[axis] for axis in permutation)).astype(
            {"f32": "float32", "i8": "int8"}[dtype]
        )
        builder = _builder(permutation, names, dtype)
        turned = builder.op("transpose", 0, permutation=permutation)
        widened = builder.op("cast", 1, dtype="f32")
        results = [builder.op("add", turned, widened), builder.op("neg", turned)]
        check_graph(builder, results, [x, other], 0, RUNNABLE)


def test_matrices_have_one_program() -> None:
    """Neither side of a matrix is known to be the short one."""
    builder = Builder([TensorType("f32", (symbol("n"), symbol("m")))])
    turned = builder.op("transpose", 0, permutation=(1, 0))
    (program,) = compile_graph(builder.finish([turned])).programs
    assert isinstance(program.body[0], Transpose)
    builder = Builder([TensorType("f32", tuple(map(symbol, ("n", "c", "h", "w"))))])
    turned = builder.op("transpose", 0, permutation=TO_CHANNELS_LAST)
    assert len(compile_graph(builder.finish([turned])).programs) == 2
