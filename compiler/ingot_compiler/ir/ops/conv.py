"""``conv(x, w[, bias]){strides, pads_before, pads_after, dilations, groups}``: convolution (ONNX
Conv-22, pads resolved).

In: x[N, C, spatial..], w[O, C/groups, kernel..], bias[O] of one element type. Out: [N, O,
positions..]; integers wrap. Not done here: ``auto_pad``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.make_shape_constraints import equal, equal_shapes, groups_divide, sizes_of
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.reference_rules import narrow, widen
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.window_rules import (
    convolution_operands,
    pad_spatial,
    window_count,
    window_of,
    window_view,
)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dilations", "groups", "pads_after", "pads_before", "strides")
    x, w = convolution_operands(types)
    groups, outputs = attribute_int(attributes, "groups"), w.shape[0]
    constraints: list[ShapeConstraint] = [
        equal("numbers of input channels", sizes_of(types, 0)[1], dim_mul(w.shape[1], groups)),
        *groups_divide(groups, outputs, "output channels"),
    ]
    for bias in types[2:]:
        constraints += equal_shapes("numbers of output channels", (outputs,), bias.shape)
    positions = window_count(x.shape[2:], window_of(attributes, w.shape[2:]))
    return Inferred((TensorType(x.dtype, (x.shape[0], outputs, *positions)),), tuple(constraints))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, w = map(widen, operands[:2])
    groups = attribute_int(attributes, "groups")
    view = window_view(pad_spatial(x, attributes, 0), w.shape[2:], attributes)
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
    with np.errstate(over="ignore"):
        return (narrow(result, operands[0]),)


OP = CoreOp("conv", _infer, _reference)
