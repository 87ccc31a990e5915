"""Shapes of results: broadcast, reduced, written out.

In: shapes. Out: a shape, or ``OpTypeError`` where numbers contradict. Not done here: what must hold
at run time (``shape_constraints``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.dims import Dim, dim_max
from ingot_compiler.ir.op_type_error import OpTypeError


def broadcast_dims(left: Dim, right: Dim) -> Dim:
    """Broadcast one dimension.

    Of an integer above 1 and an expression the integer is taken; of two different expressions,
    ``max``: at run time they are equal or one is 1, which the frontend checks. An expression
    against 0 gives 0.
    """
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        raise OpTypeError("equal dimensions, or 1", f"{left} and {right}")
    if isinstance(left, int):
        return left
    return right if isinstance(right, int) else dim_max(left, right)


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
