"""Pieces that the numpy references of the core ops share: element types, computing in float64,
attribute values.

In: arrays. Out: arrays. Not done here: type rules (``typing_rules``), windows (``window_rules``),
bf16 bit patterns: a reference sees bf16 as float32, and the interpreter widens and rounds
(``interpret``).

References are oracles, never a source of stored bytes: they compute floats in float64 and round
once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.attributes import Attributes, attribute_bool, attribute_int
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op import Array, Reference
from ingot_compiler.ir.types import LOW_BITS

COMPUTE_DTYPES: dict[str, np.dtype[np.generic]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.float32),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    **dict.fromkeys(sorted(LOW_BITS), np.dtype(np.uint8)),
}
"""Element type -> what a reference computes with; of a low-bit type, its bits."""

STORAGE_DTYPES: dict[str, np.dtype[np.generic]] = {**COMPUTE_DTYPES, "bf16": np.dtype(np.uint16)}
"""Element type -> what the interpreter takes and gives."""


def ints(shape: Sequence[Dim]) -> tuple[int, ...]:
    """Sizes that follow from arrays: no symbols."""
    assert all(isinstance(size, int) for size in shape)
    return tuple(size for size in shape if isinstance(size, int))


def widen(array: Array) -> Array:
    """Floats as float64 (exact); other element types unchanged."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def narrow(array: Array, like: Array) -> Array:
    """Round to the element type of ``like``."""
    return np.asarray(array).astype(like.dtype, copy=False)


def float_to_integer(array: Array, dtype: np.dtype[np.generic]) -> Array:
    """Truncate towards 0; what does not fit is the least i32 (i64), of which narrower types keep
    the low bits.

    ONNX leaves it open, and processors differ; this is what ``onnx.reference`` gives on x86-64. The
    upper half of u32 and u64 is moved down before it is converted, and back behind.
    """
    half = 1 << (63 if dtype.itemsize == 8 else 31)
    whole = np.trunc(array.astype(np.float64))
    upper = (whole >= half) & (dtype in (np.dtype(np.uint32), np.dtype(np.uint64)))
    moved = np.where(upper, whole - float(half), whole)
    fits = (moved >= -half) & (moved < half)
    signed = np.where(fits, moved, -float(half)).astype(np.int64)
    return np.where(upper, signed ^ np.int64(-half), signed).astype(dtype)


def in_f64(function: Callable[..., Array]) -> Reference:
    """Reference of an elementwise op that computes floats in float64 and rounds once to the first
    operand's type."""

    def reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (narrow(function(*map(widen, operands)), operands[0]),)

    return reference


def directly(function: Callable[..., Array]) -> Reference:
    """Reference of an elementwise op that is exact (or decides) in the operands' own type."""

    def reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.asarray(function(*operands)),)

    return reference


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) in the type of ``x``, without overflow."""
    small = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return result


def erf(x: Array) -> Array:
    """The error function, elementwise in float64; numpy has none."""
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over ``axes``, kept as axes of size 1; NaN for none, without numpy's warning."""
    return np.asarray(x.sum(axes, keepdims=True) / math.prod(x.shape[axis] for axis in axes))


def open_grid(sizes: Sequence[int]) -> tuple[Array, ...]:
    """One index array per axis, 0 .. size - 1 along that axis and of size 1 along the others."""
    rank = len(sizes)
    return tuple(
        np.arange(size).reshape((-1, *[1] * (rank - 1 - axis))) for axis, size in enumerate(sizes)
    )


def element_index(indices: Array, axis: int) -> tuple[Array, ...]:
    """A numpy index that is ``indices`` along ``axis`` and the element's own position along every
    other axis."""
    own: list[Array] = [np.broadcast_to(grid, indices.shape) for grid in open_grid(indices.shape)]
    own[axis] = indices.astype(np.int64)
    return tuple(own)


def scatter(x: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """A copy of ``x`` where ``x[index]`` takes ``updates``, element by element in row-major
    order."""
    result = x.copy()
    if reduction == "none":
        result[index] = updates
        return result
    logical = {
        "add": np.logical_or,
        "mul": np.logical_and,
        "min": np.logical_and,
        "max": np.logical_or,
    }
    plain = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    (logical if x.dtype == np.bool_ else plain)[reduction].at(result, index, updates)
    return result


def least(dtype: np.dtype[Any]) -> Any:
    """The identity of max: -inf, the least integer, or False."""
    if dtype.kind == "f":
        return dtype.type(-np.inf)
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def greatest(dtype: np.dtype[Any]) -> Any:
    """The identity of min: inf, the greatest integer, or True."""
    if dtype.kind == "f":
        return dtype.type(np.inf)
    return True if dtype.kind == "b" else np.iinfo(dtype).max


def arg_extreme(function: Callable[..., Array], x: Array, attributes: Attributes) -> Array:
    """Reference of ``argmax`` and ``argmin``; ``function`` is numpy's, which prefers the first of
    equals; 0 for an empty axis."""
    axis, keepdims = attribute_int(attributes, "axis"), attribute_bool(attributes, "keepdims")
    if x.shape[axis] == 0:
        return np.asarray(np.sum(x, axis, np.int64, keepdims=keepdims))
    if attribute_bool(attributes, "select_last"):
        flipped = function(np.flip(x, axis), axis, keepdims=keepdims)
        return np.asarray(x.shape[axis] - 1 - flipped)
    return np.asarray(function(x, axis, keepdims=keepdims))


def f32_to_bf16(values: Array) -> npt.NDArray[np.uint16]:
    """Round float32 to the nearest bf16 bit pattern, halves to even; a NaN stays a (quiet) NaN with
    its sign."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(values.shape)
    # The carry out of the lower half may run into the exponent: that is the correct rounding, up to
    # infinity.
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    quiet = (bits >> 16) | 0x0040
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)
