"""Convolutions of 8-bit integers: types, the interpreter, and machine code that equals it element
for element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.harness.codegen_harness import DOT_PRODUCTS, NUMPY, RUNNABLE, Array
from tests.harness.ir_harness import run_op
from tests.harness.lowering_harness import Builder, check_graph, compile_graph
from tests.harness.opencl_harness import DevicePrograms

from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.loops.program import Contraction, Depthwise, LoopProgram
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.target import Target

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
    ((2, 33, 9, 8), (33, 1, 3, 3), window(2, groups=33, stride=2, pad_value=9)),
    ((1, 5, 9, 15), (5, 1, 5, 7), window(2, pad=3, groups=5, dilation=2, pad_value=9)),
    ((1, 7, 9), (7, 1, 5), window(1, pad=2, groups=7, pad_value=9)),
    ((1, 6, 4, 3, 5), (6, 1, 2, 3, 3), window(3, groups=6, pad_value=9)),
    ((1, 3, 20, 20), (3, 1, 17, 18), window(2, groups=3, pad_value=9)),
    ((1, 18, 22, 21), (18, 1, 30, 27), window(2, pad=13, groups=18, pad_value=9)),
    ((1, 6, 7, 6), (12, 1, 3, 3), window(2, groups=6, pad_value=9)),
    ((1, 6, 9, 9), (7, 6, 3, 3), window(2, pad=2, dilation=2, pad_value=5)),
    ((2, 7, 11), (4, 7, 3), window(1, pad_value=2)),
    ((1, 2, 5, 4, 5), (3, 2, 3, 2, 3), window(3, pad_value=2)),
]


@pytest.mark.broad
@pytest.mark.parametrize("case", SHAPES, ids=lambda case: "x".join(map(str, case[1])))
def test_machine_code_is_exact(
    case: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
) -> None:
    """Every shape with known weights, what follows fused, against the interpreter; the signs take
    turns."""
    number = SHAPES.index(case)
    check_conv(case, PAIRS[number % 4], TARGETS)
    check_conv(case, PAIRS[(number + 1) % 4], TARGETS[:1])


@pytest.mark.parametrize("side", [3, 14, 31, 51])
def test_depthwise_kernels_of_many_taps_have_channels_in_lanes(side: int) -> None:
    """Sums too long for a block are a loop over taps."""
    builder = Builder([TensorType("u8", (1, 16, 60, 60))])
    weights = builder.constant(drawn((16, 1, side, side), "i8", 2), "i8")
    total = builder.op("conv", 0, weights, **window(2, groups=16, pad_value=0))
    fused = compile_graph(builder.finish([total])).fused
    assert "depthwise" in [launch.group.kind for launch in launches_of(fused)]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_every_sign_and_made_weights(dtypes: tuple[DType, DType]) -> None:
    """Dense, depthwise and grouped for each pair of signs; weights that are made at run time."""
    for number in (0, 3, 4):
        check_conv(SHAPES[number], dtypes, TARGETS[-1:])
    check_conv(SHAPES[1], dtypes, TARGETS[1:2], constant=False)


def check_conv(
    case: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
    dtypes: tuple[DType, DType],
    targets: Sequence[Target],
    *,
    constant: bool = True,
) -> None:
    """Compile for each target and compare."""
    (x_shape, w_shape, attributes), (x_dtype, w_dtype) = case, dtypes
    x, w = drawn(x_shape, x_dtype, 1), drawn(w_shape, w_dtype, 2)
    kinds = [TensorType(x_dtype, x.shape), TensorType(w_dtype, w.shape)]
    builder = Builder(kinds[: 1 if constant else 2])
    weights = builder.constant(w, w_dtype) if constant else 1
    total = builder.op("conv", 0, weights, **attributes)
    outputs = [total, builder.op("add", total, total)]
    check_graph(builder, outputs, [x] if constant else [x, w], 0.0, targets)


@pytest.mark.parametrize("groups", [1, 4])
def test_one_channel_is_narrowed_and_stored_alone(groups: int) -> None:
    """One column of a tile, made bytes: nothing else is written (LLVM's own form wrote four)."""
    x, w = drawn((1, 4, 7, 7), "u8", 1), drawn((groups, 4 // groups, 3, 3), "i8", 2)
    builder = Builder([TensorType("u8", x.shape)])
    attributes = {**window(2, pad_value=125), "groups": groups}
    total = builder.op("conv", 0, builder.constant(w, "i8"), **attributes)
    limit = builder.op("literal", dtype="f32", shape=(), value=(255.0,))
    limited = builder.op("min", builder.op("relu", builder.op("cast", total, dtype="f32")), limit)
    check_graph(builder, [builder.op("cast", limited, dtype="u8")], [x], 0.0, TARGETS)


@pytest.mark.broad
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


@pytest.mark.broad
@pytest.mark.opencl
def test_opencl_gives_the_same() -> None:
    """Dense and depthwise, both signs of each operand: as the interpreter of loops."""
    found: list[tuple[LoopProgram, list[Array]]] = []
    for number, dtypes in ((0, PAIRS[0]), (1, PAIRS[3]), (4, PAIRS[1]), (5, PAIRS[2])):
        x_shape, w_shape, attributes = SHAPES[number]
        builder = Builder([TensorType(dtypes[0], x_shape)])
        weights = builder.constant(drawn(w_shape, dtypes[1], 2), dtypes[1])
        graph = builder.finish([builder.op("conv", 0, weights, **attributes)])
        compiled = compile_graph(graph, VECTOR_MACHINE)
        for launch in launches_of(compiled.fused):
            program = compiled.programs[launch.program]
            if isinstance(program.body[0], Contraction | Depthwise):
                specs = [compiled.fused.buffers[buffer] for buffer in launch.buffers]
                counts = [evaluate(spec.element_count, {}) for spec in specs]
                kinds = zip(counts, specs, strict=True)
                found.append((program, [drawn((count,), spec.dtype, 3) for count, spec in kinds]))
    assert len(found) == 4
    machine = DevicePrograms([program for program, _ in found])
    for number, (program, arrays) in enumerate(found):
        if isinstance(program.body[0], Depthwise):
            arrays[1].reshape(-1, 4)[:, 3] = 0  # behind three taps
        expected = [array.copy() for array in arrays]
        interpret_loops(program, expected, {}, f32_lanes=VECTOR_MACHINE.f32_lanes)
        assert machine.run(number, arrays) == 0
        np.testing.assert_array_equal(arrays[-1], expected[-1])


@pytest.mark.broad
def test_layers_that_differ_in_their_scales_share_a_kernel() -> None:
    """What is multiplied and added behind a sum lies in memory; limits stay in the code."""
    x, w = drawn((1, 8, 6, 7), "u8", 1), drawn((8, 8, 3, 3), "i8", 2)
    builder = Builder([TensorType("u8", x.shape)])
    value = 0
    for scale, zero in ((1e-4, 3.0), (2e-4, 3.0), (3e-4, 100.0)):
        total = builder.op("conv", value, builder.constant(w, "i8"), **window(2, pad_value=3))
        scaled = builder.op("mul", builder.op("cast", total, dtype="f32"), builder.literal(scale))
        moved = builder.op("add", builder.op("round", scaled), builder.literal(zero))
        low = builder.op("max", moved, builder.literal(1.0))
        clamped = builder.op("min", low, builder.literal(255.0))
        value = builder.op("cast", clamped, dtype="u8")
    check_graph(builder, [value], [x], 0.0, TARGETS)
    compiled = compile_graph(builder.finish([value]))
    tiles = [program for program in compiled.programs if isinstance(program.body[0], Contraction)]
    assert len(tiles) == 3
    inner, outer, _ = tiles
    assert str(inner.body).count("1e-04") == 0
    assert inner.body == outer.body
    assert "value=255.0" in str(inner.body)
