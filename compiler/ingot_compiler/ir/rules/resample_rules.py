"""Resampling along one axis, for the reference of ``resize``: where each new position lies in the
source, and which elements it is made of (ONNX Resize-19).

In: the attributes of ``resize``, sizes. Out: coordinates, source indices and weights. Not done
here: which axes are resampled (``ops.resize``).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_float,
    attribute_floats,
    attribute_ints,
    attribute_str,
)
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.sizes.simplest_fraction import F64_BITS, simplest_fraction

_TINY = 1e-300


def coordinates(attributes: Attributes, position: int, size: int) -> tuple[Array, float]:
    """The source coordinate of every new position along one axis, and the scale.

    A coordinate is a quotient of integers below 2^53, rounded once, so that it is whole or a half
    where the exact one is."""
    new = attribute_ints(attributes, "sizes")[position]
    given = attribute_floats(attributes, "scales")[position]
    factor = simplest_fraction(given, F64_BITS) if given else Fraction(new, size)
    up, down = float(factor.numerator), float(factor.denominator)
    where = np.arange(new, dtype=np.float64)
    mode = attribute_str(attributes, "coordinates")
    if mode == "asymmetric":
        found = where * down / up
    elif mode == "align_corners":
        length, unit = (up * size, down) if given else (float(new), 1.0)
        found = where * ((size - 1) * unit) / max(length - unit, _TINY)
    elif mode == "tf_crop_and_resize":
        roi = attribute_floats(attributes, "roi")
        start, end = roi[position], roi[position + len(roi) // 2]
        found = _cropped(where, start, end, float(factor * size), size)
    elif mode == "pytorch_half_pixel" and new == 1:
        found = where * 0
    elif mode == "half_pixel_symmetric":
        found = ((2 * where + 1 - new) * down / up + (size - 1)) / 2
    else:
        found = ((2 * where + 1) * down / up - 1) / 2
    return found, up / down


def _cropped(where: Array, start: float, end: float, length: float, size: int) -> Array:
    """Positions from ``start`` to ``end`` of an axis whose ends are 0 and 1."""
    if length == 1:
        return np.full(len(where), 0.5 * (start + end) * (size - 1))
    return where * (end - start) * (size - 1) / (length - 1) + start * (size - 1)


def tap_count(mode: str, scale: float, antialias: bool) -> tuple[int, int]:
    """(first tap relative to the floor of the coordinate, number of taps)."""
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[mode]
    shrink = min(scale, 1.0) if antialias else 1.0
    first = int(np.floor(-reach / shrink) + 1)
    return (0, 1) if mode == "nearest" else (first, 2 - 2 * first)


def _kernel(mode: str, distance: Array, a: float) -> Array:
    d = np.abs(distance)
    if mode == "linear":
        return np.asarray(np.clip(1 - d, 0, 1))
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    return np.where(d <= 1, near, np.where(d < 2, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a, 0.0))


def _nearest(where: Array, mode: str) -> Array:
    rounding = {
        "ceil": np.ceil(where),
        "floor": np.floor(where),
        "round_prefer_ceil": np.floor(where + 0.5),
        "round_prefer_floor": np.ceil(where - 0.5),
    }
    return rounding[mode].astype(np.int64)


def taps(attributes: Attributes, where: Array, scale: float, size: int) -> tuple[Array, Array]:
    """(source index, weight) of every tap of every new position, clamped to the edge."""
    mode, antialias = attribute_str(attributes, "mode"), attribute_bool(attributes, "antialias")
    if mode == "nearest":
        rounded = _nearest(where, attribute_str(attributes, "nearest_mode"))
        nearest = np.clip(rounded, 0, size - 1)[:, None]
        return nearest, np.ones(nearest.shape)
    first, count = tap_count(mode, scale, antialias)
    index = np.floor(where).astype(np.int64)[:, None] + np.arange(first, first + count)
    shrink = min(scale, 1.0) if antialias else 1.0
    distance = (index - where[:, None]) * shrink
    weight = _kernel(mode, distance, attribute_float(attributes, "cubic_coefficient"))
    if attribute_bool(attributes, "exclude_outside"):
        weight = np.where((index >= 0) & (index < size), weight, 0.0)
    if attribute_bool(attributes, "exclude_outside") or antialias:
        weight = weight / weight.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1), weight
