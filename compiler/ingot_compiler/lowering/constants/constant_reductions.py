"""Reductions and products of constants, the same bytes on every machine.

In: arrays. Out: arrays. Not done here: which nodes are folded (``constant_expression``).

Integers wrap, in any order. Sums and products of floats are made in f64 in an order that is stated
here and does not depend on the processor, and rounded once to the operand's type: they are nearer
to the true value than what a kernel computes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ingot_compiler.ir.op import Array
from ingot_compiler.lowering.constants.constant_arithmetic import (
    ARITHMETIC,
    Arithmetic,
    with_one_nan,
)

_BLOCK_ELEMENTS = 1 << 20  # that are widened at once
_COMBINED: Mapping[str, Arithmetic] = {
    "max": ARITHMETIC["max"],
    "mean": ARITHMETIC["add"],
    "min": ARITHMETIC["min"],
    "product": ARITHMETIC["mul"],
    "sum": ARITHMETIC["add"],
}


def reduced(array: Array, function: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """``reduce`` over axes none of which is empty; a mean of floats alone."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    rows = array.transpose(*sorted(axes), *kept)
    count = math.prod(array.shape[axis] for axis in axes)
    rows = rows.reshape(count, -1)
    out = np.empty(rows.shape[1], array.dtype)
    step = max(1, _BLOCK_ELEMENTS // count)
    for start in range(0, rows.shape[1], step):
        total = _by_halves(_wide(rows[:, start : start + step]), _COMBINED[function])
        with np.errstate(all="ignore"):
            out[start : start + step] = total / count if function == "mean" else total
    return with_one_nan(out).reshape(shape)


def product(left: Array, right: Array, shape: tuple[int, ...]) -> Array:
    """``matmul`` of floats: in f64, one product after the other along the depth."""
    total = np.zeros(shape)
    with np.errstate(all="ignore"):
        for index in range(left.shape[-1]):
            column = left[..., index, None].astype(np.float64)
            total += column * right[..., index, None, :]
        return with_one_nan(total.astype(left.dtype))


def _wide(rows: Array) -> Array:
    """A copy that may be overwritten, in f64 if it has floats."""
    return np.array(rows, np.float64 if rows.dtype.kind == "f" else rows.dtype)


def _by_halves(rows: Array, combine: Arithmetic) -> Array:
    """Combine the first half of the rows with the last one until one is left."""
    count = len(rows)
    while count > 1:
        half = count // 2
        rows[:half] = combine((rows[:half], rows[count - half : count]), np.empty_like(rows[:half]))
        count -= half
    return np.asarray(rows[0])
