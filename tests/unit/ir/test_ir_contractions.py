"""Reductions, rows, contractions and windows against ONNX's reference and direct formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.harness.ir_harness import Array, op_name, run_onnx, run_op

from ingot_compiler.ir.dims import dim_floordiv, symbol
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import TensorType

RANDOM = np.random.RandomState(7)
X = RANDOM.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
S0, S1 = symbol("s0"), symbol("s1")


def random(*shape: int) -> Array:
    """Uniform float32 in [-1, 1)."""
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("function", ["sum", "product", "max", "min", "mean"])
def test_reduce_agrees_with_onnx(function: str, axes: tuple[int, ...], keepdims: bool) -> None:
    """Every function over any axes; no axis means no reduction."""
    op = {
        "sum": "ReduceSum",
        "product": "ReduceProd",
        "max": "ReduceMax",
        "min": "ReduceMin",
        "mean": "ReduceMean",
    }
    expected = run_onnx(
        op[function],
        [X, np.array(axes, np.int64)],
        18,
        keepdims=int(keepdims),
        noop_with_empty_axes=1,
    )
    result = run_op("reduce", [X], {"function": function, "axes": axes, "keepdims": keepdims})
    np.testing.assert_allclose(result, expected, rtol=2e-6)
    assert result.shape == expected.shape


def test_empty_groups_give_the_identity() -> None:
    """A group without elements gives 0, 1, the least, the greatest value, NaN; integers 0 for the
    mean."""
    expected: dict[str, tuple[float, int]] = {
        "sum": (0.0, 0), "product": (1.0, 1), "max": (-np.inf, -(2**31)), "min": (np.inf, 2**31 - 1),
        "mean": (np.nan, 0),
    }  # fmt: skip
    for function, (for_float, for_int) in expected.items():
        attributes: dict[str, Any] = {"function": function, "axes": (0,), "keepdims": False}
        np.testing.assert_array_equal(
            run_op("reduce", [np.zeros((0, 1), np.float32)], attributes), [for_float]
        )
        np.testing.assert_array_equal(
            run_op("reduce", [np.zeros((0, 1), np.int32)], attributes), [for_int]
        )


def test_integer_mean_truncates_and_bools_have_extremes() -> None:
    """The mean of integers rounds towards 0; max of bools is any, min is all."""
    mean = run_op(
        "reduce",
        [np.array([-3, -4], np.int8)],
        {"function": "mean", "axes": (0,), "keepdims": False},
    )
    assert mean == -3
    bools = np.array([True, False])
    assert run_op("reduce", [bools], {"function": "max", "axes": (0,), "keepdims": False})
    assert not run_op("reduce", [bools], {"function": "min", "axes": (0,), "keepdims": False})


@pytest.mark.parametrize(("op", "onnx_op"), [("argmax", "ArgMax"), ("argmin", "ArgMin")])
@pytest.mark.parametrize("select_last", [True, False])
def test_arg_extremes_agree_with_onnx(op: str, onnx_op: str, select_last: bool) -> None:
    """The first or the last of equal elements is found, with and without the reduced axis."""
    x = np.array([[1, 5, 5, 1], [2, 2, 2, 2]], np.float32)
    for axis, keepdims in itertools.product((0, 1), (True, False)):
        expected = run_onnx(
            onnx_op, [x], 13, axis=axis, keepdims=int(keepdims), select_last_index=int(select_last)
        )
        result = run_op(op, [x], {"axis": axis, "keepdims": keepdims, "select_last": select_last})
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("exclusive", "reverse"), list(itertools.product((True, False), (True, False)))
)
def test_cumsum_agrees_with_onnx(exclusive: bool, reverse: bool) -> None:
    """Running sums in both directions, with and without the element itself."""
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = run_onnx(
        "CumSum", [x, np.array(1)], 14, exclusive=int(exclusive), reverse=int(reverse)
    )
    attributes = {"axis": 1, "exclusive": exclusive, "reverse": reverse}
    np.testing.assert_array_equal(run_op("cumsum", [x], attributes), expected)


@pytest.mark.parametrize(("op", "onnx_op"), [("softmax", "Softmax"), ("log_softmax", "LogSoftmax")])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_agrees_with_onnx(op: str, onnx_op: str, axis: int) -> None:
    """Any axis; large elements do not overflow."""
    x = X * (60 if op == "softmax" else 10)  # ONNX's logarithm of an underflown softmax is -inf
    atol = 2e-7 if op == "log_softmax" else 1e-30  # ONNX takes the logarithm of a float32 softmax
    np.testing.assert_allclose(
        run_op(op, [x], {"axis": axis}), run_onnx(onnx_op, [x], 13, axis=axis), rtol=1e-4, atol=atol
    )


def test_a_row_of_minus_infinity_has_no_softmax() -> None:
    """A row that is -inf throughout gives NaN."""
    x = np.array([[-np.inf, -np.inf], [-np.inf, 0.0]], np.float32)
    np.testing.assert_array_equal(
        run_op("softmax", [x], {"axis": 1}), [[np.nan, np.nan], [0.0, 1.0]]
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_layer_and_rms_norm_agree_with_onnx(axis: int) -> None:
    """Normalisation over the axes from ``axis`` on."""
    scale, bias = random(*X.shape[axis:]), random(*X.shape[axis:])
    attributes = {"axis": axis, "epsilon": 1e-3}
    expected = run_onnx("LayerNormalization", [X, scale, bias], 17, **attributes)
    np.testing.assert_allclose(
        run_op("layer_norm", [X, scale, bias], attributes), expected, rtol=1e-4, atol=1e-6
    )
    expected = run_onnx("RMSNormalization", [X, scale], 23, **attributes)
    np.testing.assert_allclose(
        run_op("rms_norm", [X, scale], attributes), expected, rtol=1e-4, atol=1e-6
    )


def test_batch_and_group_norm_agree_with_onnx() -> None:
    """Statistics given per channel, and computed per group of channels."""
    x = random(2, 6, 3, 2)
    scale, bias, mean, variance = random(6), random(6), random(6), random(6) + 2
    expected = run_onnx("BatchNormalization", [x, scale, bias, mean, variance], 15, epsilon=0.01)
    result = run_op("batch_norm", [x, scale, bias, mean, variance], {"epsilon": 0.01})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
    expected = run_onnx("GroupNormalization", [x, scale, bias], 21, epsilon=0.01, num_groups=3)
    result = run_op("group_norm", [x, scale, bias], {"epsilon": 0.01, "groups": 3})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


def test_matmul_broadcasts_and_sums_in_float64() -> None:
    """Leading axes broadcast; a float32 sum is the float64 sum rounded once; integers wrap."""
    a, b = random(3, 1, 5, 64), random(2, 64, 7)
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(run_op("matmul", [a, b]), expected)
    big = np.full((1, 2), 2**30, np.int32)
    np.testing.assert_array_equal(run_op("matmul", [big, big.T * 0 + 4]), [[0]])


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (1, 3, 7, 9),
        (4, 3, 3, 3),
        {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1), "groups": 1},
    ),
    (
        (2, 4, 8, 7),
        (6, 2, 3, 2),
        {"strides": (2, 3), "pads": (0, 1, 2, 1), "dilations": (1, 2), "groups": 2},
    ),
    (
        (1, 5, 6, 6),
        (5, 1, 3, 3),
        {"strides": (1, 2), "pads": (1, 0, 1, 0), "dilations": (1, 1), "groups": 5},
    ),
    ((2, 3, 10), (4, 3, 4), {"strides": (3,), "pads": (2, 1), "dilations": (2,), "groups": 1}),
    (
        (1, 2, 4, 5, 4),
        (3, 2, 2, 3, 2),
        {"strides": (1, 1, 2), "pads": (0,) * 6, "dilations": (1, 1, 1), "groups": 1},
    ),
    (
        (1, 8, 4, 4),
        (3, 8, 1, 1),
        {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "groups": 1},
    ),
]


def window(attributes: dict[str, Any]) -> dict[str, Any]:
    """ONNX's pads (all before, all after) as two attributes."""
    pads, rest = (
        attributes["pads"],
        {name: value for name, value in attributes.items() if name != "pads"},
    )
    return {**rest, "pads_before": pads[: len(pads) // 2], "pads_after": pads[len(pads) // 2 :]}


@pytest.mark.parametrize(("shape", "kernel", "attributes"), CONVOLUTIONS)
def test_conv_agrees_with_onnx(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """Strides, dilations, unequal pads, groups, depthwise, one to three spatial axes, with and
    without bias."""
    x, w, bias = random(*shape), random(*kernel), random(kernel[0])
    onnx_attributes = {
        ("group" if name == "groups" else name): value for name, value in attributes.items()
    }
    for operands in ([x, w], [x, w, bias]):
        expected = run_onnx("Conv", operands, 22, **onnx_attributes)
        np.testing.assert_allclose(
            run_op("conv", operands, window(attributes)), expected, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes", "extra"),
    [
        (
            (1, 3, 5, 4),
            (3, 2, 3, 3),
            {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "groups": 1},
            (0, 0),
        ),
        (
            (2, 3, 5, 4),
            (3, 2, 3, 2),
            {"strides": (3, 2), "pads": (1, 0, 2, 1), "dilations": (1, 2), "groups": 1},
            (1, 0),
        ),
        (
            (1, 4, 3, 3),
            (4, 3, 2, 2),
            {"strides": (2, 2), "pads": (0, 1, 1, 0), "dilations": (1, 1), "groups": 2},
            (0, 1),
        ),
        (
            (1, 2, 6),
            (2, 3, 3),
            {"strides": (2,), "pads": (1, 1), "dilations": (1,), "groups": 1},
            (1,),
        ),
    ],
)
def test_conv_transpose_is_the_gradient_of_conv(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    attributes: dict[str, Any],
    extra: tuple[int, ...],
) -> None:
    """<conv_transpose(x, w), y> = <x, conv(y, w)> for every y: the definition of a transpose."""
    x, w = random(*shape), random(*kernel)
    result = run_op("conv_transpose", [x, w], {**window(attributes), "output_padding": extra})
    y = random(*result.shape)
    back = run_op("conv", [y, w], window(attributes))[tuple(slice(size) for size in shape)]
    np.testing.assert_allclose(np.vdot(result, y), np.vdot(x, back), rtol=1e-3, atol=1e-4)
    bias = random(result.shape[1])
    biased = run_op("conv_transpose", [x, w, bias], {**window(attributes), "output_padding": extra})
    np.testing.assert_allclose(
        biased, result + bias.reshape(-1, *[1] * (x.ndim - 2)), rtol=1e-5, atol=1e-6
    )


def test_conv_transpose_agrees_with_onnx() -> None:
    """One case against ONNX's own reference."""
    x, w = random(1, 3, 4, 5), random(3, 2, 3, 3)
    attributes = {"strides": (2, 2), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    expected = run_onnx("ConvTranspose", [x, w], 22, **attributes, output_padding=(1, 0))
    ours = {**window(attributes), "groups": 1, "output_padding": (1, 0)}
    np.testing.assert_allclose(
        run_op("conv_transpose", [x, w], ours), expected, rtol=1e-4, atol=1e-5
    )


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    (
        (1, 2, 7, 6),
        {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 1)},
    ),
    (
        (2, 1, 9, 8),
        {"kernel": (2, 3), "strides": (1, 2), "pads": (1, 2, 0, 1), "dilations": (2, 2)},
    ),
    ((1, 3, 8), {"kernel": (3,), "strides": (2,), "pads": (1, 1), "dilations": (1,)}),
]


def onnx_pool(attributes: dict[str, Any]) -> dict[str, Any]:
    """ONNX's name of the kernel."""
    return {
        ("kernel_shape" if name == "kernel" else name): value for name, value in attributes.items()
    }


@pytest.mark.parametrize(("shape", "attributes"), POOLS)
def test_pools_agree_with_onnx(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Maximum and mean per window, with padding that does not win, and counts or not."""
    x = random(*shape)
    ours = window(attributes)
    np.testing.assert_array_equal(
        run_op("max_pool", [x], ours), run_onnx("MaxPool", [x], 22, **onnx_pool(attributes))
    )
    for include in (True, False):
        expected = run_onnx(
            "AveragePool", [x], 22, **onnx_pool(attributes), count_include_pad=int(include)
        )
        more = {"count_include_pad": include, "pads_counted_after": ours["pads_after"]}
        np.testing.assert_allclose(
            run_op("average_pool", [x], {**ours, **more}), expected, rtol=1e-5, atol=1e-6
        )


def test_pads_of_ceil_mode_do_not_count() -> None:
    """ceil_mode, resolved: the larger pads_after count only as far as pads_counted_after."""
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    ceil: dict[str, Any] = {
        "kernel": (3,),
        "strides": (2,),
        "pads_before": (1,),
        "pads_after": (2,),
        "dilations": (1,),
    }
    counted: dict[str, Any] = {**ceil, "count_include_pad": True, "pads_counted_after": (1,)}
    np.testing.assert_allclose(
        run_op("average_pool", [x], counted).ravel(), [1.0, 3.0, 3.0], rtol=1e-6
    )
    partly: dict[str, Any] = {
        **ceil,
        "kernel": (4,),
        "pads_after": (2,),
        "count_include_pad": True,
        "pads_counted_after": (0,),
    }
    np.testing.assert_allclose(
        run_op("average_pool", [x], partly).ravel(), [1.5, 3.5, 4.5], rtol=1e-6
    )


def test_max_pool_takes_integers() -> None:
    """Padding of an integer pool is the least integer."""
    x = np.full((1, 1, 2, 2), -5, np.int8)
    attributes = {
        "kernel": (2, 2),
        "strides": (1, 1),
        "dilations": (1, 1),
        "pads_before": (1, 1),
        "pads_after": (1, 1),
    }
    np.testing.assert_array_equal(
        run_op("max_pool", [x], attributes), np.full((1, 1, 3, 3), -5, np.int8)
    )


MASKS: list[Array | None] = [
    None,
    RANDOM.uniform(-3, 3, (5, 6)).astype(np.float32),
    np.arange(2 * 5 * 6).reshape(2, 1, 5, 6) % 3 > 0,
]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("mask", MASKS, ids=["none", "float", "bool"])
def test_attention_agrees_with_onnx(causal: bool, mask: Array | None) -> None:
    """Grouped heads, float and bool masks, the causal rule, a v of another width."""
    q, k, v = random(2, 4, 5, 8), random(2, 2, 6, 8), random(2, 2, 6, 3)
    expected = run_onnx("Attention", [q, k, v, mask], 23, scale=0.3, is_causal=int(causal))
    operands = [q, k, v] if mask is None else [q, k, v, mask]
    result = run_op("attention", operands, {"scale": 0.3, "causal": causal, "nan_to_zero": True})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_fully_masked_row_gives_nan_or_zero() -> None:
    """nan_to_zero decides what a query without keys gives."""
    q, k, v = random(1, 1, 2, 4), random(1, 1, 3, 4), random(1, 1, 3, 4)
    mask = np.array([[False] * 3, [True, False, False]])
    for nan_to_zero, expected in ((True, 0.0), (False, np.nan)):
        result = run_op(
            "attention",
            [q, k, v, mask],
            {"scale": 1.0, "causal": False, "nan_to_zero": nan_to_zero},
        )
        np.testing.assert_array_equal(result[0, 0, 0], np.full(4, expected))
        np.testing.assert_array_equal(result[0, 0, 1], v[0, 0, 0])


def test_empty_tensors_pass_through() -> None:
    """Rows, contractions and pools of empty batches give empty results, without a warning."""
    x = np.zeros((0, 4, 3), np.float32)
    assert run_op("softmax", [x], {"axis": 2}).shape == x.shape
    assert (
        run_op("group_norm", [x, random(4), random(4)], {"groups": 2, "epsilon": 0.1}).shape
        == x.shape
    )
    narrow = np.zeros((2, 0), np.float32)
    assert run_op(
        "layer_norm", [narrow, narrow[0], narrow[0]], {"axis": 1, "epsilon": 0.1}
    ).shape == (2, 0)
    np.testing.assert_array_equal(run_op("matmul", [narrow, narrow.T]), np.zeros((2, 2)))
    one = window({"strides": (1,), "pads": (0, 0), "dilations": (1,)})
    assert run_op("conv", [x, random(5, 4, 2)], {**one, "groups": 1}).shape == (0, 5, 2)
    assert run_op(
        "conv_transpose", [x, random(4, 5, 2)], {**one, "groups": 1, "output_padding": (0,)}
    ).shape == (
        0,
        5,
        4,
    )
    assert run_op("max_pool", [x], {**one, "kernel": (2,)}).shape == (0, 4, 2)
    heads: dict[str, Any] = {"scale": 1.0, "causal": True, "nan_to_zero": True}
    no_keys = np.zeros((1, 1, 0, 2), np.float32)
    np.testing.assert_array_equal(
        run_op("attention", [random(1, 1, 2, 2), no_keys, no_keys], heads), np.zeros((1, 1, 2, 2))
    )


def test_symbolic_windows() -> None:
    """Sizes of windows are expressions: floordiv(s - 1, 2) + 1 for a 3x3 with stride 2 and pad
    1."""
    x, w = TensorType("f32", (S0, 3, S1, 8)), TensorType("f32", (4, 3, 3, 3))
    attributes: dict[str, Any] = {
        "strides": (2, 2),
        "pads_before": (1, 1),
        "pads_after": (1, 1),
        "dilations": (1, 1),
        "groups": 1,
    }
    (result,) = OPS_BY_NAME["conv"].infer([x, w], attributes).results
    assert result.shape == (S0, 4, dim_floordiv(S1 - 1, 2) + 1, 4)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("matmul", [(3,), (3, 2)], {}),
        ("matmul", [(2, 3), (4, 2)], {}),
        ("matmul", [(2, 2, 3), (3, 3, 2)], {}),
        (
            "conv",
            [(1, 4, 5), (2, 3, 3)],
            window({"strides": (1,), "pads": (0, 0), "dilations": (1,), "groups": 1}),
        ),
        (
            "conv",
            [(1, 3, 5), (2, 3, 7)],
            window({"strides": (1,), "pads": (0, 0), "dilations": (1,), "groups": 1}),
        ),
        (
            "conv",
            [(1, 3, 5), (2, 3, 3)],
            window({"strides": (0,), "pads": (0, 0), "dilations": (1,), "groups": 1}),
        ),
        (
            "conv",
            [(1, 3, 5), (2, 3, 3)],
            window({"strides": (1, 1), "pads": (0, 0), "dilations": (1,), "groups": 1}),
        ),
        ("softmax", [(2, 3)], {"axis": -1}),
        ("layer_norm", [(2, 3), (2,), (3,)], {"axis": 1, "epsilon": 0.1}),
        ("layer_norm", [(2, 3), (3,), (3,)], {"axis": 1, "epsilon": 1}),
        ("group_norm", [(1, 4, 2), (4,), (4,)], {"groups": 3, "epsilon": 0.1}),
        ("batch_norm", [(1, 4), (4,), (4,), (4,), (3,)], {"epsilon": 0.1}),
        ("reduce", [(2, 3)], {"axes": (1, 0), "function": "sum", "keepdims": True}),
        ("reduce", [(2, 3)], {"axes": (1,), "function": "median", "keepdims": True}),
        ("argmax", [(2, 0)], {"axis": 1, "keepdims": True, "select_last": False}),
        (
            "attention",
            [(1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)],
            {"scale": 1.0, "causal": False, "nan_to_zero": False},
        ),
    ],
)
def test_impossible_contractions_are_refused(
    op: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    """What integers show to be impossible is an error of the type rule."""
    with pytest.raises(OpTypeError):
        OPS_BY_NAME[op_name(op)].infer([TensorType("f32", shape) for shape in shapes], attributes)
