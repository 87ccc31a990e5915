"""Resize by exact arithmetic: sizes, places and nearest elements by fractions (rule 12).

In: a node, operands. Out: its result. Not done here: cubic interpolation, regions, antialiasing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
from onnx import NodeProto, helper
from tests.fuzz.program import Array

HALF = Fraction(1, 2)
_SCALES, _SIZES = 2, 3  # positions of the operands


def resized(node: NodeProto, arrays: Sequence[Array]) -> Array:
    """The result of a nearest or linear Resize of all axes; scales mean their shortest decimals."""
    how = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    texts = {name: value.decode() for name, value in how.items() if isinstance(value, bytes)}
    x = arrays[0]
    found = x if texts["mode"] == "nearest" else x.astype(np.float64)
    for axis, size in enumerate(x.shape):
        if len(arrays) > _SIZES:
            new = int(arrays[_SIZES][axis])
            scale = Fraction(new, size)
        else:
            scale = Fraction(str(arrays[_SCALES][axis]))
            new = floor(size * scale)
        if scale != 1:
            found = _along(found, axis, new, scale, texts)
    return found.astype(x.dtype)


def _along(x: Array, axis: int, new: int, scale: Fraction, texts: dict[str, str]) -> Array:
    size, coordinates = x.shape[axis], texts["coordinate_transformation_mode"]
    places = [_place(coordinates, index, size, new, scale) for index in range(new)]
    last = size - 1

    def taken(indices: list[int]) -> Array:
        return np.take(x, [min(max(index, 0), last) for index in indices], axis)

    if texts["mode"] == "nearest":
        return taken([_nearest(texts["nearest_mode"], place) for place in places])
    shape = [-1 if other == axis else 1 for other in range(x.ndim)]
    below = [floor(place) for place in places]
    share = np.array([float(place - floor(place)) for place in places]).reshape(shape)
    behind = taken([index + 1 for index in below])
    between: Array = taken(below) * (1 - share) + behind * share
    return between


def _place(coordinates: str, index: int, size: int, new: int, scale: Fraction) -> Fraction:
    if coordinates == "asymmetric":
        return index / scale
    if coordinates == "align_corners":
        return index * (size - 1) / (size * scale - 1) if index else Fraction(0)
    if coordinates == "pytorch_half_pixel" and new == 1:
        return Fraction(0)
    moved = Fraction(size, 2) * (1 - new / (size * scale))
    offset = moved if coordinates == "half_pixel_symmetric" else 0
    return offset + (index + HALF) / scale - HALF


def _nearest(rounding: str, place: Fraction) -> int:
    return {
        "ceil": ceil(place),
        "floor": floor(place),
        "round_prefer_ceil": floor(place + HALF),
        "round_prefer_floor": ceil(place - HALF),
    }[rounding]
