"""The method of a convolution: the one that was measured to be best, else that of the model of cost.

In: a node, the fuser. Out: a ``WinogradShape``, or None for a direct convolution. Not done here:
the model (``choose_winograd``), the kernels.
"""

from __future__ import annotations

from ingot_compiler.backends.host.choose_winograd import (
    WinogradFacts,
    allowed_shapes,
    fastest_shape,
    method_names,
    shape_of_method,
)
from ingot_compiler.backends.host.dense_values import is_dense
from ingot_compiler.backends.host.few_channels import has_few_channels
from ingot_compiler.backends.host.split_products import speed_of_parts
from ingot_compiler.backends.host.winograd_tiles import WinogradShape
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.optimize_for import SIZE
from ingot_compiler.ir.precision import BF16, BF16X3, FAST
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
        fuser.precision in (FAST, BF16X3, BF16),
        _PAIR_SPEED if fuser.precision == BF16 else speed_of_parts(fuser, node),
    )
    target = fuser.targets[values.device_of(result)]
    allowed = allowed_shapes(node, facts, target)
    method = fuser.methods.of(node)
    if method is not None:
        return shape_of_method(node, method, allowed)
    if fuser.methods.of_all in method_names(allowed):
        return shape_of_method(node, fuser.methods.of_all, allowed)
    return fastest_shape(allowed, facts, target)
