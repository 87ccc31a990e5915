"""Sliding windows over spatial axes, shared by convolutions and pools: sizes for the type rules,
views for references.

In: shapes x[N, C, spatial..] and window attributes, one entry per spatial axis. Out: result sizes;
padded arrays and window views. Not done here: ``auto_pad`` and ``ceil_mode`` (the frontend resolves
them into pads).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_dims, attribute_ints
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.typing_rules import (
    NUMBERS,
    require_dtype,
    require_operands,
    require_same_dtype,
    require_sizes,
)
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

BYTES: frozenset[DType] = frozenset(("i8", "u8"))
"""The element types that a convolution sums in i32."""


@dataclass(frozen=True, slots=True)
class Window:
    """One entry per spatial axis; an output position p covers inputs p*stride - pad_before +
    k*dilation, k < kernel."""

    kernel: tuple[Dim, ...]
    strides: tuple[int, ...]
    pads_before: tuple[Dim, ...]
    pads_after: tuple[Dim, ...]
    dilations: tuple[int, ...]


def window_of(attributes: Attributes, kernel: Sequence[Dim]) -> Window:
    """Read and check the window attributes for a kernel size."""
    window = Window(
        tuple(kernel),
        attribute_ints(attributes, "strides"),
        attribute_dims(attributes, "pads_before"),
        attribute_dims(attributes, "pads_after"),
        attribute_ints(attributes, "dilations"),
    )
    entries = (window.strides, window.pads_before, window.pads_after, window.dilations)
    rank = len(window.kernel)
    one_per_axis = all(len(entry) == rank for entry in entries)
    require(one_per_axis, f"{rank} strides, pads and dilations", entries)
    positive = all(entry >= 1 for entry in (*window.strides, *window.dilations))
    require(positive, "strides and dilations >= 1", (window.strides, window.dilations))
    filled = all(not isinstance(size, int) or size >= 1 for size in window.kernel)
    require(filled, "a kernel of sizes >= 1", window.kernel)
    require_sizes((*window.pads_before, *window.pads_after), "pads")
    return window


def convolution_operands(types: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    """X and w of a convolution: of one type of numbers and one rank >= 3; a bias may follow.

    Raises:
        OpTypeError: they are not.
    """
    require_operands(types, 2, 3)
    require_same_dtype(types)
    require_dtype(types[0], NUMBERS)
    return _of_one_rank(types)


def convolution_of_bytes(types: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    """X and w of a convolution: 8-bit integers, each of its own type, of one rank >= 3; a bias of
    i32 may follow.

    Raises:
        OpTypeError: they are not.
    """
    require_operands(types, 2, 3)
    for tensor in types[:2]:
        require_dtype(tensor, BYTES)
    for bias in types[2:]:
        require_dtype(bias, frozenset[DType](("i32",)))
    return _of_one_rank(types)


def _of_one_rank(types: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    x, w = types[:2]
    if x.rank < 3 or w.rank != x.rank:
        raise OpTypeError("x and w of one rank >= 3", message(x, " and ", w))
    return x, w


def dilated(size: Dim, dilation: int) -> Dim:
    """Elements that a kernel of ``size`` spans: (size - 1) * dilation + 1."""
    return dim_add(dim_mul(dim_add(size, -1), dilation), 1)


def window_count(spatial: Sequence[Dim], window: Window) -> tuple[Dim, ...]:
    """Output positions per axis: floor((size + pads - span) / stride) + 1 (ONNX Conv-22)."""
    counts: list[Dim] = []
    for axis, size in enumerate(spatial):
        padded = dim_add(dim_add(size, window.pads_before[axis]), window.pads_after[axis])
        last_start = dim_add(
            padded, dim_mul(dilated(window.kernel[axis], window.dilations[axis]), -1)
        )
        counts.append(dim_add(dim_floordiv(last_start, window.strides[axis]), 1))
    require_sizes(counts, "room for one window")
    return tuple(counts)


def infer_pool(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    """Rule of the pools: x[N, C, spatial..] of numbers -> the window count per spatial axis."""
    require_operands(types, 1)
    x = types[0]
    require_dtype(x, NUMBERS)
    require(x.rank >= 3, "rank >= 3", x)
    kernel = attribute_ints(attributes, "kernel")
    require(len(kernel) == x.rank - 2, f"{x.rank - 2} kernel sizes", kernel)
    positions = window_count(x.shape[2:], window_of(attributes, kernel))
    return Inferred((TensorType(x.dtype, (*x.shape[:2], *positions)),))


def pad_spatial(x: Array, attributes: Attributes, value: Any) -> Array:
    """``x`` with ``value`` added before and after every spatial axis."""
    pads = zip(
        attribute_ints(attributes, "pads_before"),
        attribute_ints(attributes, "pads_after"),
        strict=True,
    )
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=value)


def window_view(padded: Array, kernel: Sequence[int], attributes: Attributes) -> Array:
    """View of ``padded`` [N, C, spatial..] as [N, C, positions.., kernel..]."""
    strides = attribute_ints(attributes, "strides")
    dilations = attribute_ints(attributes, "dilations")
    sizes = padded.shape[2:]
    spans = tuple((k - 1) * dilation + 1 for k, dilation in zip(kernel, dilations, strict=True))
    if any(span > size for span, size in zip(spans, sizes, strict=True)):
        axes = zip(sizes, spans, strides, strict=True)
        counts = [max(0, (size - span) // stride + 1) for size, span, stride in axes]
        return np.zeros((*padded.shape[:2], *counts, *kernel), padded.dtype)
    spatial = tuple(range(2, padded.ndim))
    view = np.lib.stride_tricks.sliding_window_view(padded, spans, spatial)
    positions = tuple(slice(None, None, stride) for stride in strides)
    taps = tuple(slice(None, None, dilation) for dilation in dilations)
    return view[(slice(None), slice(None), *positions, *taps)]
