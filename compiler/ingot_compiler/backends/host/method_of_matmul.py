"""The method of a matrix product by weights: the one that was measured to be best, else that of the
model of cost.

In: a node, the fuser. Out: a ``StrassenShape``, or None for a direct product. Not done here: the
model (``choose_strassen``), the kernels.
"""

from __future__ import annotations

from ingot_compiler.backends.host.choose_strassen import (
    StrassenFacts,
    StrassenShape,
    strassen_shape,
)
from ingot_compiler.backends.host.dense_values import is_dense
from ingot_compiler.ir.dims import dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.optimize_for import SIZE
from ingot_compiler.ir.precision import LOOSE
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.storage import Stored


def strassen_tiles(fuser: Fuser, node: Node, a: Stored) -> StrassenShape | None:
    """The tiles of a product by Strassen's algorithm; None where it is direct. ``a``: where the left
    factor lies."""
    values, weights, (result,) = fuser.values, node.operands[1], node.results
    if fuser.optimize == SIZE or not values.is_constant(weights):
        return None
    kinds = [values.type_of(value) for value in (*node.operands, result)]
    are_plain = len(kinds[1].shape) == 2 and {kind.dtype for kind in kinds} == {"f32"}
    if not are_plain or a.view.strides[-1] != 1:
        return None
    allows_more = fuser.precision in LOOSE
    rows, (depth, columns) = dim_product(kinds[0].shape[:-1]), kinds[1].shape
    dense = is_dense(values, node.operands[0])
    facts = StrassenFacts(rows, depth, columns, dense, allows_more)
    return strassen_shape(facts, fuser.targets[values.device_of(result)])
