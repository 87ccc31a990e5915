"""Convolutions of 8-bit integers: types, the interpreter, and machine code that equals it element
for element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.codegen_harness import DOT_PRODUCTS, NUMPY, RUNNABLE, Array
from tests.unit.ir_harness import run_op
from tests.unit.lowering_harness import Builder, check_graph

from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import DType, TensorType

TARGETS = [*RUNNABLE, *DOT_PRODUCTS]
PAIRS: list[tuple[DType, DType]] = [("u8", "i8"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8")]


def drawn(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """The whole range, the least and the greatest number often."""
    limits, draw = np.iinfo(NUMPY[dtype]), np.random.default_rng(seed)
    numbers = draw.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    edge = np.where(draw.random(shape) < 0.5, limits.min, limits.max).astype(limits.dtype)
    return np.where(draw.random(shape) < 0.3, edge, numbers)


def window(rank: int, pad: int = 1, **more: Any) -> dict[str, Any]:
    """Attributes that are alike along all axes."""
    step, dilation = more.pop("stride", 1), more.pop("dilation", 1)
    return {
        "strides": (step,) * rank, "pads_before": (pad,) * rank, "pads_after": (pad,) * rank,
        "dilations": (dilation,) * rank, "groups": 1, **more,
    }  # fmt: skip


def expected_sums(x: Array, w: Array, pad: int, value: int) -> Array:
    """A convolution with one group and strides 1, written out."""
    wide = np.pad(
        x.astype(np.int64), [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=value
    )
    rows, columns = (wide.shape[2 + axis] - w.shape[2 + axis] + 1 for axis in range(2))
    total = np.zeros((x.shape[0], w.shape[0], rows, columns), np.int64)
    for i, j in np.ndindex(*w.shape[2:]):
        part = wide[:, :, i : i + rows, j : j + columns]
        total += np.einsum("nchw,oc->nohw", part, w[:, :, i, j].astype(np.int64))
    return total.astype(np.int32)


@pytest.mark.parametrize(("x_dtype", "w_dtype"), PAIRS)
def test_the_reference_is_exact(x_dtype: DType, w_dtype: DType) -> None:
    """Sums in i32, the zero point around the image, the bias of i32."""
    x, w = drawn((2, 3, 5, 6), x_dtype, 1), drawn((4, 3, 3, 3), w_dtype, 2)
    bias = np.array([1, -2, 1 << 30, -(1 << 30)], np.int32)
    value = {"u8": 117, "i8": -101}[x_dtype]
    result = run_op("conv", [x, w, bias], window(2, pad_value=value))
    expected = expected_sums(x, w, 1, value) + bias.reshape(-1, 1, 1)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, expected)
    without = run_op("conv", [x, w], window(2))
    np.testing.assert_array_equal(without, expected_sums(x, w, 1, 0))


@pytest.mark.parametrize(
    ("dtypes", "attributes", "named"),
    [
        (("u8", "i8"), {"pad_value": 256}, "pad_value"),
        (("i8", "i8"), {"pad_value": 128}, "pad_value"),
        (("f32", "f32"), {"pad_value": 0}, "attributes"),
        (("u8", "f32"), {}, "i8"),
        (("f32", "u8"), {}, "element type"),
        (("u8", "i8", "f32"), {}, "i32"),
    ],
)
def test_other_types_are_refused(
    dtypes: tuple[DType, ...], attributes: dict[str, Any], named: str
) -> None:
    """A value around the image that x cannot hold, one for floats, mixtures with floats."""
    shapes = [(1, 3, 5, 5), (4, 3, 3, 3), (4,)]
    types = [TensorType(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=False)]
    with pytest.raises(OpTypeError, match=named):
        OPS_BY_NAME["conv"].infer(types, window(2, **attributes))


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 8, 6, 7), (20, 8, 3, 3), window(2, pad_value=3)),
    ((2, 3, 9, 8), (5, 3, 3, 3), window(2, stride=2, pad_value=7)),
    ((1, 5, 7, 6), (3, 5, 1, 1), window(2, pad=0)),
    ((1, 12, 7, 6), (8, 6, 3, 3), window(2, groups=2, pad_value=1)),
    ((1, 18, 7, 6), (18, 1, 3, 3), window(2, groups=18, pad_value=9)),
    ((1, 6, 9, 9), (7, 6, 3, 3), window(2, pad=2, dilation=2, pad_value=5)),
    ((2, 7, 11), (4, 7, 3), window(1, pad_value=2)),
    ((1, 2, 5, 4, 5), (3, 2, 3, 2, 3), window(3, pad_value=2)),
]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("x_dtype", "w_dtype"), PAIRS)
def test_machine_code_is_exact(x_dtype: DType, w_dtype: DType, constant: bool) -> None:
    """Every shape, known and made weights, what follows fused, against the interpreter."""
    for number, (x_shape, w_shape, attributes) in enumerate(SHAPES):
        x, w = drawn(x_shape, x_dtype, number), drawn(w_shape, w_dtype, 10 + number)
        kinds = [TensorType(x_dtype, x.shape), TensorType(w_dtype, w.shape)]
        builder = Builder(kinds[: 1 if constant else 2])
        weights = builder.constant(w, w_dtype) if constant else 1
        total = builder.op("conv", 0, weights, **attributes)
        outputs = [total, builder.op("add", total, total)]
        check_graph(builder, outputs, [x] if constant else [x, w], 0.0, TARGETS)


def test_two_zero_points_around_one_image() -> None:
    """Convolutions of one tensor that pad it with different values have an image each."""
    x, w = drawn((1, 4, 5, 5), "u8", 1), drawn((6, 4, 3, 3), "i8", 2)
    builder = Builder([TensorType("u8", x.shape)])
    weights = builder.constant(w, "i8")
    outputs = [
        builder.op("conv", 0, weights, **window(2, pad=pad, pad_value=value))
        for pad, value in ((1, 3), (2, 200), (2, 3), (0, 9))
    ]
    check_graph(builder, outputs, [x], 0.0, TARGETS)
