"""Casts of strings to numbers and of integers to strings, beside Python's own numbers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import UnsupportedError

_TEXT = TensorProto.STRING
_WORDS = [
    "0", "-0.0", "1", "+7", "3.14", "1e-5", "1E8", "100.5", ".5", "5.", "1e+3", "00012.500",
    "INF", "+INF", "-inf", "Inf", "NaN", "nan", "1e22", "1e23", "9007199254740993", "5e-300",
    "1.7976931348623157e308", "123456789012345678901234567890", "0.00000000000000000000000125",
    "1e400", "-1e-400", "1e0000000004", "1e99999999",
]  # fmt: skip


def _strings(words: list[str]) -> Array:
    found = np.empty(len(words), object)
    found[:] = words
    return found


def _session(given: int, to: int, path: Path, op: str = "Cast") -> Path:
    """A bundle of one cast of ``x``."""
    if op == "Cast":
        made, inputs = node("Cast", "x", "y", to=to), [tensor("x", ["n"], given)]
    else:
        made = node("CastLike", "x like", "y")
        inputs = [tensor("x", ["n"], given), tensor("like", [1], to)]
    ingot.compile(make_model([made], inputs, [tensor("y", None, to)])).save(path)
    return path


@pytest.mark.broad
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_the_nearest(dtype: Any, tmp_path: Path) -> None:
    """Bit by bit what Python reads, stepped and in machine code."""
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal(400) * 10.0 ** rng.integers(-200, 200, 400)
    words = [*_WORDS, *(repr(float(number)) for number in numbers)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    path = _session(_TEXT, kind, tmp_path / "m.ingot")
    with np.errstate(over="ignore"):
        expected = np.array([float(word) for word in words]).astype(dtype)
    for found in run_all_ways(path, [{"x": _strings(words)}]):
        np.testing.assert_array_equal(found["y"], expected)
        np.testing.assert_array_equal(np.signbit(found["y"]), np.signbit(expected))


@pytest.mark.broad
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8])
def test_integers_both_ways(dtype: Any, tmp_path: Path) -> None:
    """The least and the greatest number come back."""
    limits = np.iinfo(dtype)
    numbers = np.array([0, 1, 9, 10, 99, 100, limits.min, limits.max], dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    words = [str(number) for number in numbers.tolist()]
    written = _session(kind, _TEXT, tmp_path / "w.ingot")
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(written, executor=executor)
        assert session.run({"x": numbers})["y"].tolist() == words
    path = _session(_TEXT, kind, tmp_path / "r.ingot")
    for found in run_all_ways(path, [{"x": _strings(words)}]):
        np.testing.assert_array_equal(found["y"], numbers)


def test_integers_are_cut_at_the_point(tmp_path: Path) -> None:
    """As ONNX Cast-25 says of 100.5; CastLike casts alike."""
    session = ingot_runtime.load(_session(_TEXT, TensorProto.INT32, tmp_path / "m", "CastLike"))
    words = ["100.5", "-2.9", "1e3", "1.5e1", "5e-1", "007", "1e-99"]
    found = session.run({"x": _strings(words), "like": np.zeros(1, np.int32)})["y"]
    assert found.tolist() == [100, -2, 1000, 15, 0, 7, 0]
    assert session.run({"x": _strings([]), "like": np.zeros(1, np.int32)})["y"].tolist() == []


def test_digits_behind_the_point_take_no_room(tmp_path: Path) -> None:
    """Twenty digits with a point are more than a u64 holds, where the integer is small."""
    session = ingot_runtime.load(_session(_TEXT, TensorProto.INT64, tmp_path / "m"))
    words = [
        "2.5000000000000000000", "3.14159265358979323846", "-9.9999999999999999999",
        "9223372036854775807.999", "-9223372036854775808.00000000001", "12345678901234567890e-1",
        "99999999999999999999e-19", "0.00000000000000000000000000000001e33",
    ]  # fmt: skip
    found = session.run({"x": _strings(words)})["y"]
    assert found.tolist() == [int(Decimal(word)) for word in words]


@pytest.mark.broad
def test_what_is_no_number_is_refused(tmp_path: Path) -> None:
    """One such string among others; no word is an integer."""
    whole, real = (
        ingot_runtime.load(_session(_TEXT, kind, tmp_path / f"{kind}"))
        for kind in (TensorProto.INT64, TensorProto.FLOAT)
    )
    bad = ["", "abc", "1.2.3", "1e", "--1", "1 ", "e5", ".", "+", "1e5.5", "1e+", "0x10", "infi"]
    for session, words in ((real, bad), (whole, [*bad, "nan", "INF"])):
        for word in words:
            with pytest.raises(ingot_runtime.InputError, match="a number in every string"):
                session.run({"x": _strings(["1", word])})


@pytest.mark.broad
def test_truths_both_ways(tmp_path: Path) -> None:
    """Numbers that are not zero, as in ONNX Runtime, and the words that Cast writes."""
    words = ["0", "1", "-0.0", "1e-400", "5e-300", "nan", "-inf", "True", "false", "TRUE", "False"]
    expected = [False, True, False, False, True, True, True, True, False, True, False]
    path = _session(_TEXT, TensorProto.BOOL, tmp_path / "r.ingot")
    for found in run_all_ways(path, [{"x": _strings(words)}]):
        assert found["y"].tolist() == expected
    for word in ("", "yes", "true ", "tru"):
        with pytest.raises(ingot_runtime.InputError, match="a number, true or false"):
            ingot_runtime.load(path).run({"x": _strings(["1", word])})
    written = ingot_runtime.load(_session(TensorProto.BOOL, _TEXT, tmp_path / "w.ingot"))
    texts = written.run({"x": np.array([True, False, True])})["y"]
    assert texts.tolist() == ["True", "False", "True"]


@pytest.mark.parametrize(
    ("given", "to"), [(TensorProto.FLOAT8E5M2, _TEXT), (_TEXT, TensorProto.FLOAT8E5M2)]
)
def test_casts_of_low_bits_are_refused(given: int, to: int) -> None:
    """By name, as floats of 8 bits have no text in ONNX's reference."""
    made = make_model(
        [node("Cast", "x", "y", to=to)], [tensor("x", ["n"], given)], [tensor("y", None, to)]
    )
    with pytest.raises(UnsupportedError, match="a cast of"):
        translate(made, MemoryStore())
