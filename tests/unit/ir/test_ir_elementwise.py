"""Elementwise core ops against ONNX's reference, numpy and values worked out by hand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.harness.ir_harness import NUMPY_NAMES, Array, op_name, run_onnx, run_op

from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType

SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.25,
    -17.0,
    88.0,
    1e-30,
    math.inf,
    -math.inf,
    math.nan,
]
UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "isnan": "IsNaN",
    "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "softplus": "Softplus",
}  # fmt: skip
BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "pow": "Pow", "equal": "Equal", "less": "Less",
    "less_equal": "LessOrEqual",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ONNX's reference warns of overflow and NaN
@pytest.mark.parametrize("op", sorted(UNARY))
def test_unary_agrees_with_onnx(op: str) -> None:
    """A unary op gives what ONNX's reference gives, to a few float32 roundings, specials
    included."""
    x = np.array(SPECIALS, np.float32)
    np.testing.assert_allclose(run_op(op, [x]), run_onnx(UNARY[op], [x], 22), rtol=1e-6, atol=1e-37)


def test_unary_keeps_or_changes_the_element_type() -> None:
    """Unary ops keep float16 and float64; isnan and isinf give bool."""
    for dtype in (np.float16, np.float64):
        x = np.array([0.25, -1.0], dtype)
        assert run_op("tanh", [x]).dtype == dtype
        assert run_op("isinf", [x], {"positive": True, "negative": True}).dtype == np.bool_


def test_relu_and_min_max_propagate_nan() -> None:
    """NaN is never replaced by a number."""
    x = np.array([math.nan, -1.0, 2.0], np.float32)
    np.testing.assert_array_equal(run_op("relu", [x]), [math.nan, 0.0, 2.0])
    np.testing.assert_array_equal(
        run_op("min", [x, np.zeros(1, np.float32)]), [math.nan, -1.0, 0.0]
    )
    np.testing.assert_array_equal(run_op("max", [np.zeros(1, np.float32), x]), [math.nan, 0.0, 2.0])


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_agrees_with_onnx(approximate: str) -> None:
    """Both forms of gelu give what ONNX's function body gives."""
    x = np.linspace(-6.0, 6.0, 49, dtype=np.float32)
    expected = run_onnx("Gelu", [x], 20, approximate=approximate)
    np.testing.assert_allclose(
        run_op("gelu", [x], {"approximate": approximate}), expected, rtol=1e-5, atol=1e-6
    )


def test_silu_is_x_times_sigmoid() -> None:
    """silu(x) = x / (1 + e^-x)."""
    x = np.array([-30.0, -1.0, 0.0, 2.0], np.float64)
    np.testing.assert_allclose(run_op("silu", [x]), x / (1 + np.exp(-x)), rtol=1e-14)


@pytest.mark.parametrize(
    ("positive", "negative"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_isinf_selects_signs(positive: bool, negative: bool) -> None:
    """Only infinities of the wanted signs are found."""
    x = np.array(SPECIALS, np.float32)
    expected = run_onnx(
        "IsInf", [x], 20, detect_positive=int(positive), detect_negative=int(negative)
    )
    np.testing.assert_array_equal(
        run_op("isinf", [x], {"positive": positive, "negative": negative}), expected
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", sorted(BINARY))
def test_binary_broadcasts_and_agrees_with_onnx(op: str) -> None:
    """A binary op broadcasts as numpy does and gives what ONNX's reference gives."""
    a = np.array(SPECIALS, np.float32).reshape(4, 1, 4)
    b = np.array([0.5, -2.0, math.nan], np.float32).reshape(3, 1)
    np.testing.assert_allclose(run_op(op, [a, b]), run_onnx(BINARY[op], [a, b], 19), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u32", "u64"])
def test_integer_division_and_remainders_follow_c(dtype: str) -> None:
    """a = div(a, b) * b + fmod(a, b) with truncation; mod has the sign of the divisor; a divisor of
    0 gives 0."""
    numpy_dtype = np.dtype(NUMPY_NAMES[dtype])
    values = [7, 8, 0, 1, 120] if dtype.startswith("u") else [7, -7, 8, -8, 0, 1, -1, 120]
    a, b = (grid.ravel().astype(numpy_dtype) for grid in np.meshgrid(values, values))
    for op, function in (("div", _truncated), ("fmod", _c_remainder), ("mod", operator.mod)):
        expected = [function(int(x), int(y)) if y else 0 for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(
            run_op(op, [a, b]), np.array(expected, numpy_dtype), err_msg=op
        )


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _c_remainder(a: int, b: int) -> int:
    return a - _truncated(a, b) * b


def test_least_integer_over_minus_one_wraps() -> None:
    """The one overflowing quotient wraps instead of trapping."""
    least = np.array([-(2**31)], np.int32)
    np.testing.assert_array_equal(run_op("div", [least, np.array([-1], np.int32)]), least)


def test_integer_pow_wraps_and_truncates_reciprocals() -> None:
    """Integer powers wrap; a negative exponent gives 1, -1 or 0."""
    a = np.array([3, 2, 1, -1, -1, 0, -2], np.int32)
    b = np.array([4, -1, -5, -3, -2, -1, 3], np.int32)
    np.testing.assert_array_equal(run_op("pow", [a, b]), [81, 0, 1, -1, 1, 0, -8])
    wrapped = run_op("pow", [np.array([3], np.int8), np.array([6], np.int8)])
    np.testing.assert_array_equal(wrapped, np.array([729 % 256 - 256], np.int8))


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("logical_and", np.bitwise_and), ("logical_or", np.bitwise_or), ("logical_xor", np.bitwise_xor),
        ("equal", np.equal), ("less", np.less), ("min", np.bitwise_and), ("max", np.bitwise_or),
    ],
)  # fmt: skip
def test_bools(op: str, function: Callable[[Any, Any], Any]) -> None:
    """Logical ops, comparisons, min and max of bools follow their truth tables."""
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    np.testing.assert_array_equal(run_op(op, [a, b]), function(a, b))
    np.testing.assert_array_equal(run_op("logical_not", [a]), ~a)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or),
        ("bitwise_xor", np.bitwise_xor),
    ],
)
def test_bits(op: str, function: Callable[[Any, Any], Any]) -> None:
    """Bitwise ops work on the two's complement form."""
    a, b = np.array([0, -1, 77, -128], np.int8), np.array([5, 5, -77, 127], np.int8)
    np.testing.assert_array_equal(run_op(op, [a, b]), function(a, b))
    np.testing.assert_array_equal(run_op("bitwise_not", [a]), ~a)


def test_shifts_reach_beyond_the_width() -> None:
    """Shifting by the width or more gives 0, or -1 for a negative number to the right."""
    a, b = np.array([1, 255, 129], np.uint8), np.array([7, 1, 8], np.uint8)
    np.testing.assert_array_equal(run_op("shift_left", [a, b]), [128, 254, 0])
    np.testing.assert_array_equal(run_op("shift_right", [a, b]), [0, 127, 0])
    negative = run_op("shift_right", [np.array([-8, -8], np.int8), np.array([1, 9], np.int8)])
    np.testing.assert_array_equal(negative, [-4, -1])


def test_select_broadcasts_three_operands() -> None:
    """select takes each element from a or b."""
    condition = np.array([[True], [False]])
    result = run_op("select", [condition, np.array([1, 2, 3], np.int32), np.array(9, np.int32)])
    np.testing.assert_array_equal(result, [[1, 2, 3], [9, 9, 9]])


@pytest.mark.parametrize("target", sorted(NUMPY_NAMES))
@pytest.mark.parametrize("source", sorted(NUMPY_NAMES))
def test_cast_between_all_types(source: str, target: str) -> None:
    """Small values survive a cast between any two types; floats truncate, bool is x != 0."""
    x: Array = np.array([0, 1, 5]).astype(NUMPY_NAMES[source])
    expected = np.array([0, 1, 1 if "bool" in (source, target) else 5]).astype(NUMPY_NAMES[target])
    result = run_op("cast", [x], {"dtype": target})
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    fractions = run_op("cast", [np.array([1.75, -1.75, 0.25], np.float32)], {"dtype": "i32"})
    np.testing.assert_array_equal(fractions, [1, -1, 0])


def test_float_elementwise_ops_round_once() -> None:
    """Float32 results of transcendental ops are the float64 results rounded: at most half a unit in
    the last place."""
    x = np.linspace(0.01, 0.99, 257, dtype=np.float32)
    for op, function in (
        ("exp", np.exp),
        ("log", np.log),
        ("sin", np.sin),
        ("tanh", np.tanh),
        ("acos", np.arccos),
    ):
        np.testing.assert_array_equal(
            run_op(op, [x]), function(x.astype(np.float64)).astype(np.float32), err_msg=op
        )


def test_every_op_is_listed_once() -> None:
    """Names are unique, and elementwise ops say so."""
    assert len(OPS_BY_NAME) == len(set(OPS_BY_NAME))
    assert all(
        Trait.ELEMENTWISE in OPS_BY_NAME[op_name(op)].traits
        for op in (*UNARY, *BINARY, "select", "cast", "gelu")
    )
    assert Trait.ELEMENTWISE not in OPS_BY_NAME["matmul"].traits


@pytest.mark.parametrize(
    ("op", "types", "attributes", "expected"),
    [
        ("exp", ["i32"], {}, "an element type out of bf16 f16 f32 f64"),
        ("add", ["f32", "f64"], {}, "operands of one element type"),
        ("add", ["bool", "bool"], {}, "an element type out of"),
        ("add", ["f32"], {}, "2 operands"),
        ("add", ["f32", "f32"], {"axis": 1}, "attributes {}"),
        ("logical_not", ["i8"], {}, "an element type out of bool"),
        ("cast", ["f32"], {"dtype": "f8"}, "dtype to be one of"),
        ("gelu", ["f32"], {"approximate": "sigmoid"}, "approximate to be one of none tanh"),
        ("isinf", ["f32"], {"positive": 1, "negative": True}, "positive to be true or false"),
    ],
)
def test_type_errors_say_expected_and_got(
    op: str, types: list[Any], attributes: dict[str, Any], expected: str
) -> None:
    """Wrong operands and attributes are refused with what was expected."""
    with pytest.raises(OpTypeError) as caught:
        OPS_BY_NAME[op_name(op)].infer([TensorType(dtype, (2,)) for dtype in types], attributes)
    assert str(caught.value.expected).startswith(expected)
    assert caught.value.got
