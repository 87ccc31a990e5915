"""Elementwise groups with axes that only a run finds to be stretched: what they are where their
last axes are one.

In: a group without anchor. Out: the group with its last axes as one, and for which sizes that means
the same. Not done here: loops, how many axes (``pointwise``).

Axes that may be stretched are part of no run of elements, so that rows of few elements cost as much
as long ones. Mostly each operand is whole along several axes, or has one element for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ingot_compiler.ir.dims import Dim, dim_add, dim_max, dim_min, dim_mul, dim_product
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kinds.touched_views import is_elementwise
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MergedAxes:
    """``condition``: 1 for the sizes for which ``group`` is the group, else 0."""

    condition: Dim
    group: Group


def merged_axes(group: Group, count: int) -> MergedAxes | None:
    """A group whose last axes, ``count`` of them, are one; None where that is no form of it, or is
    one for all sizes."""
    tensors = (*group.operands, *group.results)
    if not all(is_elementwise(group, node) for node in group.nodes):
        return None
    if not all(_lies_as_one(tensor, count) for tensor in tensors):
        return None
    condition = _condition(group, count)
    if condition in (0, 1):
        return None
    merged = replace(
        group,
        operands=tuple(_merged(operand, count) for operand in group.operands),
        results=tuple(_merged(result, count) for result in group.results),
        types=tuple((value, _merged_type(each, count)) for value, each in group.types),
    )
    return MergedAxes(condition, merged)


def _condition(group: Group, count: int) -> Dim:
    """1 where each tensor is whole along the last axes, or has one element for all of them."""
    wanted = group.results[0].type.shape[-count:]
    shapes = [tensor_type.shape for _, tensor_type in group.types]
    shapes += [tensor.type.shape for tensor in (*group.operands, *group.results)]
    condition: Dim = 1
    for own in dict.fromkeys(_last(shape, count, 1) for shape in shapes):
        if own != wanted and any(size != 1 for size in own):
            condition = dim_mul(condition, _is_whole_or_one(own, wanted))
    return condition


def _is_whole_or_one(own: Shape, wanted: Shape) -> Dim:
    size = dim_product(own)
    is_one, is_whole = _are_equal(size, 1), _are_equal(size, dim_product(wanted))
    return dim_min(1, dim_add(is_one, is_whole))


def _are_equal(left: Dim, right: Dim) -> Dim:
    """1 if they are, else 0."""
    apart = dim_add(dim_max(left, right), dim_mul(dim_min(left, right), -1))
    return dim_add(1, dim_mul(dim_min(1, apart), -1))


def _lies_as_one(tensor: Operand, count: int) -> bool:
    """Whether the elements along the last axes lie one behind the other, for all sizes."""
    sizes, strides = _last(tensor.type.shape, count, 1), _last(tensor.view.strides, count, 0)
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    return all(
        strides[outer] == dim_mul(strides[inner], sizes[inner]) for outer, inner in pairwise(axes)
    )


def _merged(tensor: Operand, count: int) -> Operand:
    sizes, strides = _last(tensor.type.shape, count, 1), _last(tensor.view.strides, count, 0)
    stride = next(
        (each for size, each in zip(sizes[::-1], strides[::-1], strict=True) if size != 1), 0
    )
    view = View(_with_last(tensor.view.strides, count, stride), tensor.view.offset)
    return replace(tensor, type=_merged_type(tensor.type, count), view=view)


def _merged_type(tensor_type: TensorType, count: int) -> TensorType:
    shape = tensor_type.shape
    return replace(tensor_type, shape=_with_last(shape, count, dim_product(shape[-count:])))


def _with_last(numbers: tuple[Dim, ...], count: int, last: Dim) -> tuple[Dim, ...]:
    """One in the place of the last ones; a tensor of rank 0 stays one."""
    return (*numbers[:-count], last) if numbers else ()


def _last(numbers: tuple[Dim, ...], count: int, missing: int) -> tuple[Dim, ...]:
    own = numbers[-count:]
    return (*(missing,) * (count - len(own)), *own)
