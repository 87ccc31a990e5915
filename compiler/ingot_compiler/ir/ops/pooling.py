"""Core pools over windows.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_dims,
    attribute_ints,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.reference_rules import least, narrow, widen
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_sizes
from ingot_compiler.ir.rules.window_rules import infer_pool, pad_spatial, window_view
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType


def _infer_average_pool(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    names = ("dilations", "kernel", "pads_after", "pads_before", "strides")
    require_attributes(attributes, *names, "count_include_pad", "pads_counted_after")
    results = infer_pool(types, attributes)
    require_dtype(types[0], FLOATS)
    attribute_bool(attributes, "count_include_pad")
    counted, after = (
        attribute_dims(attributes, "pads_counted_after"),
        attribute_dims(attributes, "pads_after"),
    )
    require(len(counted) == len(after), f"{len(after)} pads_counted_after", counted)
    require_sizes(counted, "pads_counted_after")
    pairs = zip(counted, after, strict=True)
    bounded = all(not (isinstance(c, int) and isinstance(a, int)) or c <= a for c, a in pairs)
    require(bounded, f"pads_counted_after <= {after}", counted)
    return results


def _counted(spatial: Sequence[int], attributes: Attributes) -> Array:
    """1 for every element of the padded spatial shape that counts, else 0."""
    include = attribute_bool(attributes, "count_include_pad")
    mask = np.ones((1, 1, *spatial))
    after, counted = (
        attribute_ints(attributes, "pads_after"),
        attribute_ints(attributes, "pads_counted_after"),
    )
    if not include:
        return pad_spatial(mask, attributes, 0)
    inner = [(0, 0), (0, 0), *zip(attribute_ints(attributes, "pads_before"), counted, strict=True)]
    outer = [(0, 0), (0, 0), *((0, a - c) for a, c in zip(after, counted, strict=True))]
    return np.pad(np.pad(mask, inner, constant_values=1), outer)


def _reference_average_pool(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, kernel = operands[0], attribute_ints(attributes, "kernel")
    axes = tuple(range(x.ndim, 2 * x.ndim - 2))
    sums = window_view(pad_spatial(widen(x), attributes, 0), kernel, attributes).sum(axes)
    counts = window_view(_counted(x.shape[2:], attributes), kernel, attributes).sum(axes)
    with np.errstate(all="ignore"):
        return (narrow(sums / counts, x),)


AVERAGE_POOL = CoreOp(
    "average_pool", _infer_average_pool, _reference_average_pool, traits=Trait.DENSE_OF_ALL
)
"""``average_pool{kernel, strides, pads_before, pads_after, dilations, count_include_pad,
pads_counted_after}``: mean per window (ONNX AveragePool-22).

In: x[N, C, spatial..] of floats. Out: [N, C, positions..]: the sum of the window's elements over
their count; padding counts only with ``count_include_pad``, and then only the first
``pads_counted_after`` elements of pads_after (the rest comes from ``ceil_mode``, which the frontend
resolved). A window without counted elements gives NaN.
"""


def _infer_max_pool(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dilations", "kernel", "pads_after", "pads_before", "strides")
    return infer_pool(types, attributes)


def _reference_max_pool(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, kernel = operands[0], attribute_ints(attributes, "kernel")
    view = window_view(pad_spatial(x, attributes, least(x.dtype)), kernel, attributes)
    return (np.asarray(view.max(tuple(range(x.ndim, view.ndim)))),)


MAX_POOL = CoreOp(
    "max_pool", _infer_max_pool, _reference_max_pool, traits=Trait.DENSE_OF_ALL | Trait.EXACT
)
"""``max_pool{kernel, strides, pads_before, pads_after, dilations}``: greatest element per
window (ONNX MaxPool-22).

In: x[N, C, spatial..] of numbers. Out: [N, C, positions..]; padding never wins, NaN propagates; a
window of padding only gives the least value.
"""


OPS = (
    AVERAGE_POOL,
    MAX_POOL,
)
