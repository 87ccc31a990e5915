"""Shapes of results: broadcast, reduced, written out.

In: shapes. Out: a shape, or ``OpTypeError`` where numbers contradict. Not done here: what must hold
at run time (``shape_constraints``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.dims import Dim, dim_broadcast
from ingot_compiler.ir.op_type_error import OpTypeError


def broadcast_dims(left: Dim, right: Dim) -> Dim:
    """Broadcast one dimension: that they are equal or one is 1 at run time is checked there
    (``shape_constraints``)."""
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and left != right
        and 1 not in (left, right)
    ):
        raise OpTypeError("equal dimensions, or 1", f"{left} and {right}")
    return dim_broadcast(left, right)


def broadcast_shapes(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Broadcast any number of shapes as numpy does, aligned at the last dimension."""
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for index, dim in enumerate(shape, rank - len(shape)):
            result[index] = broadcast_dims(result[index], dim)
    return tuple(result)


def reduced_shape(shape: Sequence[Dim], axes: Collection[int], keepdims: bool) -> tuple[Dim, ...]:
    """``shape`` with ``axes`` gone, or of size 1 when ``keepdims``."""
    if keepdims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
