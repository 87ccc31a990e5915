"""Rows whose elements lie far from each other are brought together before a kernel reads them several
times, also where it computes them from something narrower."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.lowering_harness import BEST, Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, launches_of

SHAPE = (2, 96, 40)  # rows of 96 lie 40 elements apart


def _normalised(builder: Builder, x: int) -> int:
    scale, bias = builder.constant(normal(1, 96)), builder.constant(normal(2, 96))
    turned = builder.op("transpose", x, permutation=(0, 2, 1))
    return builder.op("layer_norm", turned, scale, bias, axis=2, epsilon=1e-5)


def _dequantized() -> tuple[Builder, int]:
    """Bytes that are dequantized, and transposed then."""
    builder = Builder([TensorType("u8", SHAPE)])
    x = builder.op("cast", 0, dtype="f32")
    return builder, _normalised(builder, builder.op("mul", x, builder.literal(0.1)))


def _of_floats() -> tuple[Builder, int]:
    builder = Builder([f32(*SHAPE)])
    return builder, _normalised(builder, 0)


def _rows_group(builder: Builder, result: int) -> Group:
    fused = compile_graph(builder.finish([result]), BEST).fused
    groups = (launch.group for launch in launches_of(fused))
    (found,) = (group for group in groups if group.kind == "rows")
    return found


@pytest.mark.parametrize("is_narrow", [True, False])
def test_rows_lie_together(*, is_narrow: bool) -> None:
    """What is copied is as narrow as what was stored."""
    group = _rows_group(*(_dequantized() if is_narrow else _of_floats()))
    (x,) = (operand for operand in group.operands if operand.type.shape == (2, 40, 96))
    assert x.view.strides[-1] == 1
    assert x.type.dtype == ("u8" if is_narrow else "f32")


def test_results() -> None:
    """They are those of the interpreter."""
    builder, result = _dequantized()
    draw = np.random.default_rng(1)
    check_graph(builder, [result], [draw.integers(0, 256, SHAPE).astype(np.uint8)])
    builder, result = _of_floats()
    check_graph(builder, [result], [normal(3, *SHAPE)])


def _windows(builder: Builder, op: str, x: int) -> int:
    """What an op of windows of three makes of a signal, as long as that."""
    pads = {"pads_before": (1,), "pads_after": (1,)}
    if op == "conv":
        weights = builder.constant(normal(1, 4, 4, 3))
        return builder.op("conv", x, weights, strides=(1,), dilations=(1,), groups=1, **pads)
    if op == "softmax":
        return builder.op("softmax", x, axis=1)
    return builder.op(op, x, kernel=(3,), strides=(1,), dilations=(1,), **_POOLS[op], **pads)


_POOLS: dict[str, dict[str, Any]] = {
    "max_pool": {},
    "average_pool": {"count_include_pad": False, "pads_counted_after": (0,)},
}


@pytest.mark.parametrize("ending", ["", "add", "relu"])
@pytest.mark.parametrize("op", ["conv", "max_pool", "average_pool", "softmax"])
@pytest.mark.parametrize("length", [7, 96, "n"])
def test_behind_a_kernel_of_its_own(op: str, ending: str, length: int | str) -> None:
    """What that kernel reads lies as it wants it, whoever reads its result: a convolution has zeros
    around its image. Found by fuzzing."""
    builder = Builder([f32(2, 4, length if isinstance(length, int) else symbol("n"))])
    made = _windows(builder, op, 0)
    if ending:
        made = builder.op(ending, made, *((0,) if ending == "add" else ()))
    result = builder.op("softmax", made, axis=2)
    for size in (7, 96) if isinstance(length, str) else (length,):
        check_graph(builder, [result], [normal(3, 2, 4, size)])
