"""``conv(x, w[, bias]){strides, pads_before, pads_after, dilations, groups[, pad_value]}``:
convolution (ONNX Conv-22, pads resolved; ConvInteger-10, weights less their zero points).

In: x[N, C, spatial..], w[O, C/groups, kernel..], bias[O] of one element type; or x and w of 8-bit
integers, each of its own type, and bias of i32. Out: [N, O, positions..], i32 for 8-bit integers;
integers wrap. ``pad_value``, of 8-bit integers alone, is what stands around x: its zero point (0
where it is left out). Not done here: ``auto_pad``, zero points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import (
    equal,
    equal_shapes,
    groups_divide,
    sizes_of,
)
from ingot_compiler.ir.rules.reference_rules import narrow, widen
from ingot_compiler.ir.rules.window_rules import (
    BYTES,
    convolution_of_bytes,
    convolution_operands,
    pad_spatial,
    window_count,
    window_of,
    window_view,
)
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    of_bytes = bool(types) and types[0].dtype in BYTES
    x, w = (convolution_of_bytes if of_bytes else convolution_operands)(types)
    own = ["pad_value"] if of_bytes and "pad_value" in attributes else []
    names = ("dilations", "groups", "pads_after", "pads_before", "strides")
    require_attributes(attributes, *names, *own)
    if own:
        _require_pad_value(x.dtype, attribute_int(attributes, "pad_value"))
    groups, outputs = attribute_int(attributes, "groups"), w.shape[0]
    constraints: list[ShapeConstraint] = [
        equal("numbers of input channels", sizes_of(types, 0)[1], dim_mul(w.shape[1], groups)),
        *groups_divide(groups, outputs, "output channels"),
    ]
    for bias in types[2:]:
        constraints += equal_shapes("numbers of output channels", (outputs,), bias.shape)
    positions = window_count(x.shape[2:], window_of(attributes, w.shape[2:]))
    dtype: DType = "i32" if of_bytes else x.dtype
    return Inferred((TensorType(dtype, (x.shape[0], outputs, *positions)),), tuple(constraints))


def _require_pad_value(dtype: DType, value: int) -> None:
    low = 0 if dtype == "u8" else -128
    require(low <= value < low + 256, f"a pad_value of {dtype}", value)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, w = (_exact(operand) for operand in operands[:2])
    groups, fill = attribute_int(attributes, "groups"), attributes.get("pad_value", 0)
    view = window_view(pad_spatial(x, attributes, fill), w.shape[2:], attributes)
    spatial = x.ndim - 2
    positions = view.shape[2 : 2 + spatial]
    count, inner = math.prod(positions), math.prod(w.shape[1:])
    matrices = w.reshape(groups, w.shape[0] // groups, inner)
    result = np.empty((x.shape[0], w.shape[0], *positions), x.dtype)
    for sample, windows in zip(result, view, strict=True):
        # [C, positions.., kernel..] -> [groups, C/groups * kernel, positions]: one matrix product
        # per group.
        columns = np.moveaxis(windows, range(1 + spatial, 1 + 2 * spatial), range(1, 1 + spatial))
        products = np.matmul(matrices, columns.reshape(groups, inner, count))
        sample[...] = products.reshape(sample.shape)
    for bias in operands[2:]:
        result += bias.reshape(-1, *[1] * spatial)
    if operands[0].dtype.itemsize == 1:
        return (result.astype(np.int64).astype(np.int32),)
    with np.errstate(over="ignore"):
        return (narrow(result, operands[0]),)


def _exact(operand: Array) -> Array:
    """Floats, and 8-bit integers, whose sums of products f64 holds, as float64."""
    return operand.astype(np.float64) if operand.dtype.itemsize == 1 else widen(operand)


OPS = (CoreOp("conv", _infer, _reference, traits=Trait.DENSE),)
