"""Slices that are picked from a tensor, such as pixels of many channels, and are stored
contiguously.

In: the fuser, a ``gather_nd``, its first operand. Out: that operand is stored so. Not done here:
the kernel that picks them.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.relayout import contiguous

_LANES_MIN = 8
_PICKED_MIN = 4  # so many elements are copied in the time of one that is picked where it lies alone


def lay_slices_together(fuser: Fuser, node: Node, operand: int) -> None:
    """Copy the operand where its slices fill vectors, and so many are picked that all may be copied
    for that; every user then reads the copy."""
    tensor_type, result = (fuser.values.type_of(value) for value in (operand, node.results[0]))
    depth = fuser.values.type_of(node.operands[1]).shape[-1]
    assert isinstance(depth, int)
    last = tensor_type.shape[-1]
    has_slices = node.integer("batch_dims") + depth < tensor_type.rank
    if not has_slices or typical(last) < _LANES_MIN:
        return
    picked = dim_mul(result.element_count, fuser.values.use_count(operand) * _PICKED_MIN)
    if typical(picked) >= typical(tensor_type.element_count):
        fuser.storage.put(operand, contiguous(fuser, operand))
