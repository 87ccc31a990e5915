"""Casts of floats to strings, beside numpy's text of the fewest digits and ``onnx.reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, reference, tensor

import ingot
import ingot_runtime

_PLAIN_BELOW = {"float16": 1e3, "float32": 1e6, "float64": 1e16}


def _text(number: Any) -> str:
    """The text of one float by numpy's digits; numpy's own bound of exponents depends on its
    version."""
    size = abs(float(number))
    if not np.isfinite(number):
        return str(number)
    if size == 0 or 1e-4 <= size < _PLAIN_BELOW[number.dtype.name]:
        return np.format_float_positional(number, unique=True, trim="0")
    return np.format_float_scientific(number, unique=True, trim="-", exp_digits=2)


def _model(dtype: np.dtype[Any]) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return make_model(
        [node("Cast", "x", "y", to=TensorProto.STRING)],
        [tensor("x", ["n"], kind)],
        [tensor("y", None, TensorProto.STRING)],
    )


def _numbers(dtype: np.dtype[Any]) -> Array:
    """Every fifth f16; each power of two, the least numbers, and random patterns of the others."""
    bits = np.dtype(f"u{dtype.itemsize}")
    if dtype == np.float16:
        return np.arange(0, 1 << 16, 5, dtype=bits).view(dtype)
    rng, mantissa = np.random.default_rng(5), {4: 23, 8: 52}[dtype.itemsize]
    powers = np.arange(1 << (8 * dtype.itemsize - mantissa), dtype=bits) << bits.type(mantissa)
    patterns = rng.integers(0, np.iinfo(bits).max, 4000, dtype=bits)
    made = [powers, powers + bits.type(1), powers - bits.type(1), patterns]
    found = np.concatenate([*made, np.arange(300, dtype=bits)]).view(dtype)
    plain = rng.standard_normal(1000) * 10.0 ** rng.integers(-6, 18, 1000)
    return np.concatenate([found, plain.round(3).astype(dtype)])


@pytest.mark.broad
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_text_is_the_shortest(name: str, tmp_path: Path) -> None:
    """Each float has numpy's digits, stepped and in machine code."""
    dtype = np.dtype(name)
    with np.errstate(all="ignore"):
        numbers = _numbers(dtype)
    ingot.compile(_model(dtype)).save(tmp_path / "m")
    expected = [_text(number) for number in numbers]
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(tmp_path / "m", executor=executor)
        assert session.run({"x": numbers})["y"].tolist() == expected


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_text_is_that_of_the_reference(name: str, tmp_path: Path) -> None:
    """Where all versions of numpy agree about exponents."""
    dtype = np.dtype(name)
    rng = np.random.default_rng(6)
    numbers = np.concatenate(
        [rng.uniform(-999, 999, 50), [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-7, 500]]
    )
    given = {"x": numbers.astype(dtype)}
    ingot.compile(_model(dtype)).save(tmp_path / "m")
    (expected,) = reference(_model(dtype), given).values()
    found = ingot_runtime.load(tmp_path / "m").run(given)["y"]
    assert found.tolist() == expected.tolist()
