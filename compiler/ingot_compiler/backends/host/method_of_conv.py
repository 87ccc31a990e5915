"""The method of a convolution: the one that was measured to be best, else that of the model of cost.

In: a node, the fuser. Out: a ``WinogradShape`` or a ``StrassenShape``; None of both for a direct
convolution. Not done here: the models (``choose_winograd``, ``choose_strassen``), the kernels.
"""

from __future__ import annotations

from ingot_compiler.backends.host.choose_strassen import (
    StrassenFacts,
    StrassenShape,
    strassen_shape,
)
from ingot_compiler.backends.host.choose_winograd import (
    WinogradFacts,
    allowed_shapes,
    fastest_shape,
    method_names,
    no_method_error,
    shape_of_method,
)
from ingot_compiler.backends.host.conv_methods import DIRECT, STRASSEN
from ingot_compiler.backends.host.convolution import ConvShape
from ingot_compiler.backends.host.dense_values import is_dense
from ingot_compiler.backends.host.few_channels import has_few_channels
from ingot_compiler.backends.host.split_products import speed_of_parts
from ingot_compiler.backends.host.taps_inside import skips_taps
from ingot_compiler.backends.host.winograd_tiles import WinogradShape
from ingot_compiler.ir.dims import dim_mul, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.optimize_for import SIZE
from ingot_compiler.ir.precision import BF16, LOOSE
from ingot_compiler.lowering.fused import Operand
from ingot_compiler.lowering.fusion.fuser import Fuser

_PAIR_SPEED = 2.0  # of a direct convolution that multiplies bf16 two at a time


def winograd_shape(fuser: Fuser, node: Node) -> WinogradShape | None:
    """The tiles of a convolution by Winograd's algorithm; None where it is direct."""
    values, (x, w), (result,) = fuser.values, node.operands[:2], node.results
    if fuser.optimize == SIZE or not values.is_constant(w) or has_few_channels(fuser, node):
        return None
    facts = WinogradFacts(
        values.type_of(x),
        values.type_of(w),
        values.type_of(result),
        is_dense(values, x),
        fuser.precision in LOOSE,
        _PAIR_SPEED if fuser.precision == BF16 else speed_of_parts(fuser, node),
    )
    target = fuser.targets[values.device_of(result)]
    allowed = allowed_shapes(node, facts, target)
    method = fuser.methods.of(node)
    if method == STRASSEN:
        return None
    if method is not None:
        return shape_of_method(node, method, allowed)
    if fuser.methods.of_all in method_names(allowed):
        return shape_of_method(node, fuser.methods.of_all, allowed)
    return fastest_shape(allowed, facts, target)


def strassen_tiles_of_conv(fuser: Fuser, anchor: Node, x: Operand | None) -> StrassenShape | None:
    """The tiles of a convolution that is one product of matrices, by Strassen's algorithm; None
    where it is direct. ``x``: the image as the kernel reads it; None: it runs by another method.

    Raises:
        UserError: somebody names the algorithm for it, and it cannot run by it.
    """
    method, of_all = fuser.methods.of(anchor), fuser.methods.of_all
    shape = None
    if method in (None, STRASSEN) and of_all != DIRECT and x is not None:
        is_asked_for = STRASSEN in (method, of_all)
        shape = _strassen_shape(fuser, anchor, x, is_asked_for=is_asked_for)
    if method == STRASSEN and shape is None:
        raise no_method_error(anchor, method, [DIRECT])
    return shape


def _strassen_shape(
    fuser: Fuser, anchor: Node, x: Operand, *, is_asked_for: bool
) -> StrassenShape | None:
    values, (image, w), (result,) = fuser.values, anchor.operands[:2], anchor.results
    types = [values.type_of(value) for value in (image, w, result)]
    is_plain = {kind.dtype for kind in types} == {"f32"} and anchor.integer("groups") == 1
    if fuser.optimize == SIZE or not is_plain or "packed" not in anchor.table:
        return None
    conv = ConvShape.of(anchor, x, anchor.dims("weight_shape"))
    taps, run, _ = conv.reduction(x)
    depth = dim_mul(dim_product(tuple(extent for _, extent in taps)), run)
    pixels, columns = dim_product((types[2].shape[0], *types[2].shape[2:])), types[2].shape[1]
    if not isinstance(run, int) or len(taps) > 1:
        return None
    if x.view.strides[1] != 1 or skips_taps(anchor, conv, x, types[2].shape):
        return None
    facts = StrassenFacts(
        pixels,
        depth,
        columns,
        is_dense(values, image),
        fuser.precision in LOOSE,
        run,
    )
    target = fuser.targets[values.device_of(result)]
    shape = strassen_shape(facts, target, is_asked_for=is_asked_for)
    return shape if shape and shape.serves_all(pixels) else None
