"""``conv_transpose(x, w[, bias]){strides, pads_before, pads_after, dilations, groups,
output_padding}``: the transpose of a convolution (ONNX ConvTranspose-22, pads resolved).

In: x[N, C, spatial..], w[C, O/groups, kernel..], bias[O] of one element type. Out: [N, O, sizes..]
with size = ``(d - 1) * stride + (k - 1) * dilation + 1 + output_padding - pads``. Not done here:
``auto_pad``, ``output_shape``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_int,
    attribute_ints,
    require_attributes,
)
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import (
    equal,
    equal_shapes,
    groups_divide,
    sizes_of,
)
from ingot_compiler.ir.rules.reference_rules import ints, narrow, widen
from ingot_compiler.ir.rules.typing_rules import (
    require_sizes,
)
from ingot_compiler.ir.rules.window_rules import convolution_operands, dilated, window_of
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _sizes(
    spatial: Sequence[Dim], kernel: Sequence[Dim], attributes: Attributes
) -> tuple[Dim, ...]:
    window, extra = window_of(attributes, kernel), attribute_dims(attributes, "output_padding")
    require(len(extra) == len(spatial), f"{len(spatial)} output_padding", extra)
    require_sizes(extra, "output_padding")
    sizes: list[Dim] = []
    for axis, size in enumerate(spatial):
        full = dim_add(
            dim_mul(dim_add(size, -1), window.strides[axis]),
            dilated(kernel[axis], window.dilations[axis]),
        )
        pads = dim_add(window.pads_before[axis], window.pads_after[axis])
        sizes.append(dim_add(dim_add(full, extra[axis]), dim_mul(pads, -1)))
    require_sizes(sizes, "result sizes")
    return tuple(sizes)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    names = ("dilations", "groups", "output_padding", "pads_after", "pads_before", "strides")
    require_attributes(attributes, *names)
    x, w = convolution_operands(types)
    groups = attribute_int(attributes, "groups")
    channels = equal("numbers of input channels", sizes_of(types, 0)[1], w.shape[0])
    divided = groups_divide(groups, channels.common, "input channels")
    constraints: list[ShapeConstraint] = [channels, *divided]
    outputs = dim_mul(w.shape[1], groups)
    for bias in types[2:]:
        constraints += equal_shapes("numbers of output channels", (outputs,), bias.shape)
    shape = (x.shape[0], outputs, *_sizes(x.shape[2:], w.shape[2:], attributes))
    return Inferred((TensorType(x.dtype, shape),), tuple(constraints))


def _spread(products: Array, full: Array, kernel: Sequence[int], attributes: Attributes) -> None:
    """Add products[O, kernel.., positions..] into full[O, spatial..], each tap at its offset."""
    strides = attribute_ints(attributes, "strides")
    dilations = attribute_ints(attributes, "dilations")
    positions = products.shape[1 + len(kernel) :]
    for tap in np.ndindex(*kernel):
        axes = zip(tap, strides, dilations, positions, strict=True)
        places = tuple(slice(k * d, k * d + (count - 1) * s + 1, s) for k, s, d, count in axes)
        full[(slice(None), *places)] += products[(slice(None), *tap)]


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, w = map(widen, operands[:2])
    groups, spatial, kernel = attribute_int(attributes, "groups"), x.shape[2:], w.shape[2:]
    outputs = w.shape[1] * groups
    before = attribute_ints(attributes, "pads_before")
    sizes = ints(_sizes(spatial, kernel, attributes))
    pads = zip(before, sizes, attribute_ints(attributes, "pads_after"), strict=True)
    uncropped = [low + size + high for low, size, high in pads]
    full = np.zeros((x.shape[0], outputs, *uncropped), x.dtype)
    matrices = w.reshape(groups, w.shape[0] // groups, -1).transpose(0, 2, 1)
    for sample, target in zip(x, full, strict=True):
        if sample.size and w.size:
            products = np.matmul(matrices, sample.reshape(groups, w.shape[0] // groups, -1))
            _spread(products.reshape(outputs, *kernel, *spatial), target, kernel, attributes)
    crop = tuple(slice(low, low + size) for low, size in zip(before, sizes, strict=True))
    result = full[(slice(None), slice(None), *crop)]
    for bias in operands[2:]:
        result = result + widen(bias).reshape(-1, *[1] * len(spatial))
    with np.errstate(over="ignore"):
        return (narrow(result, operands[0]),)


OPS = (CoreOp("conv_transpose", _infer, _reference, traits=Trait.DENSE),)
