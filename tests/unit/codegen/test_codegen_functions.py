"""Compiled functions against long double, in units of the last place, on every level that this
machine runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.codegen_harness import (
    NUMPY,
    RUNNABLE,
    Array,
    elementwise,
    run_function,
    run_program,
    ulps,
)

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Store
from ingot_compiler.targets.target import Target

Function = Callable[[Array], Array]
_LONG = np.longdouble
_COUNT = 20_000
_WIDTHS: tuple[DType, ...] = ("f32", "f64")


def _erf(x: Array) -> Array:
    return np.array([math.erf(float(number)) for number in x], _LONG)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# Name, exact function, range of arguments, bounds for f32 and f64 in units of the last place. erf's
# f64 reference is the C library's, itself good to one unit.
_BOUNDS: tuple[tuple[str, Function, float, float, float, float], ...] = (
    ("exp", np.exp, -110, 95, 1.1, 1.1),
    ("log", np.log, 1e-3, 1e6, 1.0, 1.0),
    ("erf", _erf, -5, 5, 6.5, 2.0),
    ("tanh", np.tanh, -12, 12, 6.0, 3.0),
    ("sigmoid", _sigmoid, -87, 100, 2.5, 2.5),
    ("silu", _silu, -80, 100, 3.0, 3.0),
    ("softplus", _softplus, -87, 100, 2.0, 2.0),
    ("sin", np.sin, -1e4, 1e4, 0.51, 1.0),
    ("cos", np.cos, -1e4, 1e4, 0.51, 1.0),
    ("tan", np.tan, -1e4, 1e4, 0.51, 2.5),
    ("asin", np.arcsin, -1, 1, 0.51, 2.0),
    ("acos", np.arccos, -1, 1, 0.51, 1.5),
    ("atan", np.arctan, -30, 30, 0.51, 1.0),
    ("sinh", np.sinh, -89, 89, 0.51, 2.5),
    ("cosh", np.cosh, -89, 89, 0.51, 1.5),
    ("asinh", np.arcsinh, -1e3, 1e3, 0.51, 2.5),
    ("acosh", np.arccosh, 1, 1e3, 0.51, 2.0),
    ("atanh", np.arctanh, -1, 1, 0.51, 2.5),
)
_SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e30, -1e30, 3e38, -3e38, 88.7,
    -104.0, -103.9, 89.0, 1e-7, -1e-7, 20.0,
)  # fmt: skip


def _arguments(least: float, greatest: float, dtype: DType) -> Array:
    rng = np.random.default_rng(7)
    wide = rng.uniform(least, greatest, _COUNT)
    near = rng.uniform(max(least, -1.0), min(greatest, 1.5), _COUNT)
    sign = rng.choice([-1.0, 1.0], _COUNT) if least < 0 else np.ones(_COUNT)
    tiny = np.clip(sign * 10.0 ** rng.uniform(-37, 0, _COUNT), least, greatest)
    return np.concatenate([wide, near, tiny]).astype(NUMPY[dtype])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize(
    ("name", "exact", "least", "greatest", "f32_max", "f64_max"),
    _BOUNDS,
    ids=[row[0] for row in _BOUNDS],
)
@pytest.mark.sweep(12)
def test_functions_stay_within_their_bounds(
    name: str,
    exact: Function,
    least: float,
    greatest: float,
    f32_max: float,
    f64_max: float,
    target: Target,
) -> None:
    """Each function's error is below its bound over its range, for both widths."""
    for dtype, bound in zip(_WIDTHS, (f32_max, f64_max), strict=True):
        x = _arguments(least, greatest, dtype)
        error = ulps(run_function(name, dtype, dtype, target, x), exact(x.astype(_LONG)))
        assert error.max() <= bound, (dtype, x[error.argmax()])


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize(
    ("name", "exact"), [row[:2] for row in _BOUNDS], ids=[row[0] for row in _BOUNDS]
)
def test_functions_agree_on_special_values(name: str, exact: Function, target: Target) -> None:
    """Zeros, infinities, NaN, denormal and extreme arguments give what the exact function gives."""
    for dtype in _WIDTHS:
        x = np.array(_SPECIAL, NUMPY[dtype])
        with np.errstate(all="ignore"):
            expected = exact(x.astype(_LONG))
            # A denormal result of silu has the few bits of its exponential.
            tiny = np.abs(expected) < np.finfo(x.dtype).tiny
            error = np.where(
                tiny, np.abs(run_function(name, dtype, dtype, target, x) - expected), 0
            )
        full = ulps(run_function(name, dtype, dtype, target, x), expected)
        assert error.max() <= np.finfo(x.dtype).tiny
        assert np.where(tiny, 0, full).max() <= 6.5, (dtype, x[np.where(tiny, 0, full).argmax()])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_trigonometry_reduces_the_largest_arguments(target: Target) -> None:
    """Arguments up to the largest float, and near multiples of pi/2, are reduced exactly."""
    rng = np.random.default_rng(3)
    for dtype, top, bound in zip(_WIDTHS, (127, 1023), (0.51, 2.5), strict=True):
        x = (2.0 ** rng.uniform(15, top, _COUNT) * rng.choice([-1, 1], _COUNT)).astype(NUMPY[dtype])
        x[:1000] = (np.arange(1000) * (37 * np.pi / 2)).astype(NUMPY[dtype])
        for name, exact in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
            assert (
                ulps(run_function(name, dtype, dtype, target, x), exact(x.astype(_LONG))).max()
                <= bound
            )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_gelu_is_absolutely_accurate(target: Target) -> None:
    """Both forms of GELU are within 1.1e-6 of the exact value in f32, by tables within 3e-7, and
    4e-15 in f64."""
    single = 3e-7 if "avx512f" in target.features else 1.1e-6
    for dtype, bound in zip(_WIDTHS, (single, 4e-15), strict=True):
        x = np.linspace(-12, 12, _COUNT).astype(NUMPY[dtype])
        wide = x.astype(_LONG)
        cube = np.sqrt(2 / _LONG(np.pi)) * (wide + _LONG(0.044715) * wide**3)
        for name, exact in (
            ("gelu_none", wide / 2 * (1 + _erf(wide / np.sqrt(_LONG(2))))),
            ("gelu_tanh", wide / 2 * (1 + np.tanh(cube))),
        ):
            assert np.abs(run_function(name, dtype, dtype, target, x) - exact).max() <= bound


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", ["gelu_none", "gelu_tanh"])
def test_gelu_far_out(name: str, target: Target) -> None:
    """Nothing is left of a large negative number, a large positive one stays, NaN is NaN, and so is
    -inf times 0."""
    x = np.array([1e30, 3e38, np.inf, -20, -3e5, np.nan, -np.inf], np.float32)
    y = run_function(name, "f32", "f32", target, x)
    np.testing.assert_array_equal(y[:3], x[:3])
    assert np.abs(y[3]) <= 1.1e-6
    assert np.isnan(y[5:]).all()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_bounded_functions_stay_bounded(target: Target) -> None:
    """tanh and erf never leave [-1, 1], sigmoid never [0, 1], and their signs are right."""
    x = np.linspace(-20, 20, _COUNT).astype(np.float32)
    for name in ("tanh", "erf"):
        y = run_function(name, "f32", "f32", target, x)
        assert np.abs(y).max() == 1
        assert (np.sign(y) == np.sign(x)).all()
    y = run_function("sigmoid", "f32", "f32", target, x)
    assert y.min() > 0
    assert y.max() == 1


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_power_follows_c(target: Target) -> None:
    """pow is exact to 1 unit (f64) and rounded right (f32), with C's result for all pairs of
    special values."""
    rng = np.random.default_rng(5)
    numbers = np.array(
        [
            0.0,
            -0.0,
            1,
            -1,
            2,
            -2,
            0.5,
            -0.5,
            3,
            -3,
            np.inf,
            -np.inf,
            np.nan,
            1e30,
            -1e30,
            2.5,
            1e-30,
        ]
    )
    for dtype, bound in zip(_WIDTHS, (0.51, 1.0), strict=True):
        left, right = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
        base = np.concatenate(
            [np.exp(rng.uniform(-20, 20, _COUNT)), 1 + rng.uniform(-1e-3, 1e-3, _COUNT), left]
        )
        exponent = np.concatenate(
            [rng.uniform(-5, 5, _COUNT), rng.uniform(-1e4, 1e4, _COUNT), right]
        )
        x, y = base.astype(NUMPY[dtype]), exponent.astype(NUMPY[dtype])
        with np.errstate(all="ignore"):
            expected = np.power(x.astype(_LONG), y.astype(_LONG))
        error = ulps(run_function("pow", dtype, dtype, target, x, y), expected)
        assert error.max() <= bound, (x[error.argmax()], y[error.argmax()])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.0, 0.5])
def test_constant_powers_need_no_logarithm(exponent: float, target: Target) -> None:
    """A constant exponent, where it stands or by its name, gives the product, the quotient or the
    root, rounded right, special values included."""
    x = np.array([*_SPECIAL, *np.linspace(-40, 40, 999)], np.float32)
    own, number = Load(0, symbol("j")), Constant(exponent, "f32")
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(_LONG), _LONG(exponent))
    here = elementwise(Apply("pow", (own, number), "f32"), ("f32", "f32"))
    programs = here, _with_named_exponent(here, number)
    lines = [len(llvm_text(kernel_module(program, target)).splitlines()) for program in programs]
    assert lines[0] == lines[1]
    for program in programs:
        y = np.zeros_like(x)
        run_program(program, target, [x, y], {"n": len(x)})
        assert ulps(y, expected).max() <= 0.51


def _with_named_exponent(program: LoopProgram, number: Constant) -> LoopProgram:
    """The same with the exponent as a value that has a name."""
    (loop,) = program.body
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Apply)
    base, _ = store.value.arguments
    power = replace(store.value, arguments=(base, Local("e", "f32")))
    body = (Let("e", number), replace(store, value=power))
    return replace(program, body=(replace(loop, body=body),))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize(("name", "reference"), [("fmod", np.fmod), ("mod", np.mod)])
def test_float_remainders_are_exact(
    name: str, reference: Callable[[Array, Array], Array], target: Target
) -> None:
    """fmod and mod are exact for quotients of any size, with the sign of numpy's result."""
    rng = np.random.default_rng(9)
    numbers = np.array(
        [0.0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40]
    )
    left, right = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    for dtype in _WIDTHS:
        x = np.concatenate(
            [rng.standard_normal(2000) * 10.0 ** rng.uniform(-10, 20, 2000), left]
        ).astype(NUMPY[dtype])
        y = np.concatenate(
            [rng.standard_normal(2000) * 10.0 ** rng.uniform(-10, 10, 2000), right]
        ).astype(NUMPY[dtype])
        with np.errstate(all="ignore"):
            expected = reference(x, y)
        result = run_function(name, dtype, dtype, target, x, y)
        same = (result == expected) & (np.signbit(result) == np.signbit(expected))
        assert (same | (np.isnan(result) & np.isnan(expected))).all()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_rounding_functions_match_numpy(target: Target) -> None:
    """floor, ceil, round (half to even), sqrt, abs, sign, neg, relu, reciprocal are numpy's, bit
    for bit."""
    for dtype in _WIDTHS:
        x = np.array(
            [*_SPECIAL, 1.5, 2.5, -2.5, 0.49999997, 8388609.0, *np.linspace(-9, 9, 777)],
            NUMPY[dtype],
        )
        with np.errstate(all="ignore"):
            relu = np.where(x < 0, x.dtype.type(0), x)
            expected = {
                "floor": np.floor(x), "ceil": np.ceil(x), "round": np.rint(x), "sqrt": np.sqrt(x), "abs": np.abs(x),
                "sign": np.where(x == 0, x, np.sign(x)), "neg": -x, "relu": relu, "reciprocal": 1 / x,
            }  # fmt: skip
        for name, values in expected.items():
            np.testing.assert_array_equal(
                run_function(name, dtype, dtype, target, x), values, err_msg=name
            )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_extrema_and_comparisons_treat_nan(target: Target) -> None:
    """max and min give NaN if either is NaN; comparisons with NaN are False; the tests see
    infinities and NaN."""
    numbers = np.array([0.0, 1, -1, np.inf, -np.inf, np.nan, 5, 5.5], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    with np.errstate(invalid="ignore"):
        binary = {
            "max": np.maximum(x, y), "min": np.minimum(x, y), "less": x < y, "less_equal": x <= y, "equal": x == y,
        }  # fmt: skip
    for name, expected in binary.items():
        result: DType = "bool" if expected.dtype == bool else "f32"
        np.testing.assert_array_equal(run_function(name, "f32", result, target, x, y), expected)
    unary = {
        "isnan": np.isnan(x), "isinf": np.isinf(x), "isinf_positive": np.isposinf(x), "isinf_negative": np.isneginf(x),
        "isinf_none": np.zeros(len(x), bool),
    }  # fmt: skip
    for name, expected in unary.items():
        np.testing.assert_array_equal(run_function(name, "f32", "bool", target, x), expected)
