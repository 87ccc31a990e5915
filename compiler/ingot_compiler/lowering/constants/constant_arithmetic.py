"""Arithmetic on constants: one correctly rounded operation at a time, one NaN; comparisons.

In: arrays and a buffer for the result. Out: the buffer. Not done here: functions that numpy rounds
differently on different processors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES, float_to_integer
from ingot_compiler.ir.types import FLOATS, SIGNED, UNSIGNED, DType

Arithmetic = Callable[[Sequence[Array], Array], Array]
"""(operands, buffer of the result's shape and type, which may be one of the operands) -> the
buffer."""

_CHUNK_ELEMENTS = 1 << 16  # stays in the cache while it is checked


def with_one_nan(array: Array) -> Array:
    """Write every NaN of a float array as the positive quiet NaN without payload."""
    if array.dtype.kind != "f":
        return array
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK_ELEMENTS):
        chunk = flat[start : start + _CHUNK_ELEMENTS]
        found = np.isnan(chunk)
        if found.any():
            chunk[found] = np.nan
    return array


def _by(function: np.ufunc) -> Arithmetic:
    def compute(operands: Sequence[Array], out: Array) -> Array:
        with np.errstate(all="ignore"):
            function(*operands, out=out)
        return with_one_nan(out)

    return compute


def _reciprocal(operands: Sequence[Array], out: Array) -> Array:
    with np.errstate(all="ignore"):
        np.divide(out.dtype.type(1), operands[0], out=out)
    return with_one_nan(out)


def _same_bits(operands: Sequence[Array], out: Array) -> Array:
    return np.ascontiguousarray(operands[0]).view(out.dtype).reshape(out.shape)


def _extreme(function: np.ufunc, negative_zero_wins: bool) -> Arithmetic:
    """Make min or max, with the sign of a zero decided here: processors give either operand."""

    def compute(operands: Sequence[Array], out: Array) -> Array:
        left, right = operands
        if out.dtype.kind != "f":
            function(left, right, out=out)
            return out
        if right.size == 1 and right != 0:  # a bound, as most are: no two zeros
            with np.errstate(all="ignore"):
                function(left, right, out=out)
            return with_one_nan(out)
        zeros = (left == 0) & (right == 0)
        negative = (
            (np.signbit(left) | np.signbit(right))
            if negative_zero_wins
            else (np.signbit(left) & np.signbit(right))
        )
        with np.errstate(all="ignore"):
            function(left, right, out=out)
        out[zeros] = np.where(negative, out.dtype.type(-0.0), out.dtype.type(0.0))[zeros]
        return with_one_nan(out)

    return compute


def _relu(operands: Sequence[Array], out: Array) -> Array:
    return _extreme(np.maximum, False)((*operands, out.dtype.type(0)), out)


ARITHMETIC: Mapping[str, Arithmetic] = {
    "add": _by(np.add),
    "sub": _by(np.subtract),
    "mul": _by(np.multiply),
    "div": _by(np.divide),
    "sqrt": _by(np.sqrt),
    "neg": _by(np.negative),
    "abs": _by(np.absolute),
    "ceil": _by(np.ceil),
    "floor": _by(np.floor),
    "round": _by(np.rint),
    "reciprocal": _reciprocal,
    "relu": _relu,
    "bit_cast": _same_bits,
    "bitwise_xor": _by(np.bitwise_xor),
    "bitwise_and": _by(np.bitwise_and),
    "bitwise_not": _by(np.bitwise_not),
    "bitwise_or": _by(np.bitwise_or),
    "shift_left": _by(np.left_shift),
    "shift_right": _by(np.right_shift),
    "min": _extreme(np.minimum, True),
    "max": _extreme(np.maximum, False),
}

COMPARISONS: Mapping[str, Arithmetic] = {
    "equal": _by(np.equal),
    "isnan": _by(np.isnan),
    "less": _by(np.less),
    "less_equal": _by(np.less_equal),
    "logical_and": _by(np.logical_and),
    "logical_not": _by(np.logical_not),
    "logical_or": _by(np.logical_or),
}
"""Functions of operands whose arrays hold their numbers; the results are bool."""


def cast(array: Array, source: DType, target: DType) -> Array:
    """A new array of type ``target``; floats round to nearest even, integers wrap, bool is
    ``!= 0``, and what fits into no integer is what kernels of every target make of it."""
    if source == "bf16":
        wide = array.astype(np.uint32, order="C")
        wide <<= 16
        array = wide.view(np.float32)
    if target == "bf16":
        return _to_bf16(array)
    if source in FLOATS and target in SIGNED | UNSIGNED:
        return _to_integers(array, STORAGE_DTYPES[target])
    with np.errstate(all="ignore"):
        return with_one_nan(array.astype(STORAGE_DTYPES[target], order="C", copy=source != "bf16"))


def _to_integers(array: Array, dtype: np.dtype[np.generic]) -> Array:
    found, flat = np.empty(array.shape, dtype), array.reshape(-1)
    for start in range(0, flat.size, _CHUNK_ELEMENTS):
        part = slice(start, start + _CHUNK_ELEMENTS)
        with np.errstate(all="ignore"):
            found.reshape(-1)[part] = float_to_integer(flat[part], dtype)
    return found


def _to_bf16(array: Array) -> Array:
    """Bit patterns of the nearest bf16 (ties to even), rounded once: f64 first to f32 by rounding
    to odd."""
    with np.errstate(all="ignore"):
        single = array.astype(np.float32, order="C")
        if array.dtype == np.float64:
            single = _rounded_to_odd(array, single)
    found = np.empty(array.shape, np.uint16)
    flat, rounded = single.reshape(-1), found.reshape(-1)
    for start in range(0, flat.size, _CHUNK_ELEMENTS):
        part = flat[start : start + _CHUNK_ELEMENTS]
        bits = part.view(np.uint32)
        kept = bits >> np.uint32(16)
        kept &= np.uint32(1)
        kept += np.uint32(0x7FFF)
        kept += bits
        kept >>= np.uint32(16)
        is_nan = np.isnan(part)
        if is_nan.any():
            kept[is_nan] = 0x7FC0
        rounded[start : start + _CHUNK_ELEMENTS] = kept
    return found


def _rounded_to_odd(wide: Array, single: Array) -> Array:
    """f32 whose last bit says whether f64 lay beyond it (Boldo and Melquiond 2005): a second
    rounding is then exact."""
    back = single.astype(np.float64)
    inexact = (back != wide) & np.isfinite(single)
    away = inexact & (np.abs(back) > np.abs(wide))
    bits = single.view(np.uint32)
    bits = np.where(away, bits - np.uint32(1), bits)
    return np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32).view(np.float32)
