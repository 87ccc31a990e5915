"""View algebra: how transposes, slices, broadcasts and reshapes act on strides, without moving
data.

In: a ``View`` and the shape it shows. Out: the view of the result, or None where only a copy can
express it. Not done here: deciding when to copy (``fuse``). Dimensions may be symbolic; equality is
that of canonical forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    substitute,
    symbols_of,
)
from ingot_compiler.lowering.groups.fused import View

_SYMBOL_BITS_MAX = 16  # an axis that is still empty then is taken as it is

Shape = tuple[Dim, ...]


def dense_view(shape: Shape, order: Sequence[int] | None = None) -> View:
    """The view of a dense buffer whose axes are stored in ``order`` (outermost first; default
    row-major)."""
    return haloed_view(shape, order or range(len(shape)), (0,) * len(shape), (0,) * len(shape))[0]


def haloed_view(
    shape: Shape, order: Sequence[int], before: Sequence[Dim], after: Sequence[Dim]
) -> tuple[View, Dim]:
    """The view of the interior of a buffer padded by ``before``/``after`` elements per axis, and
    the element count."""
    strides: list[Dim] = [0] * len(shape)
    count: Dim = 1
    for axis in reversed(list(order)):
        strides[axis] = count
        count = dim_mul(count, shape[axis] + before[axis] + after[axis])
    offset: Dim = 0
    for axis, pad in enumerate(before):
        offset = offset + pad * strides[axis]
    return View(tuple(strides), offset), count


def transpose_view(view: View, permutation: Sequence[int]) -> View:
    """The view of ``transpose {permutation}``."""
    return View(tuple(view.strides[axis] for axis in permutation), view.offset)


def slice_view(view: View, starts: Sequence[Dim], steps: Sequence[int]) -> View:
    """The view of ``slice``: element i is x[start + i*step]."""
    offset = view.offset
    for start, stride in zip(starts, view.strides, strict=True):
        offset = offset + start * stride
    return View(
        tuple(dim_mul(stride, step) for stride, step in zip(view.strides, steps, strict=True)),
        offset,
    )


def broadcast_view(view: View, shape: Shape, wanted: Shape) -> View:
    """The view of ``shape`` broadcast to ``wanted`` (numpy rules: align right, 1 stretches)."""
    missing = len(wanted) - len(shape)
    kept = [
        dim_mul(stride, stretch_factor(size, target))
        for size, target, stride in zip(shape, wanted[missing:], view.strides, strict=True)
    ]
    return View((0,) * missing + tuple(kept), view.offset)


def stretch_factor(size: Dim, target: Dim) -> Dim:
    """0 where ``size`` is 1 and stretches to ``target``, else 1; decided at run time when neither
    is known."""
    if size == target:
        return 1
    return 0 if size == 1 else dim_min(size - 1, 1)


def reshape_view(view: View, shape: Shape, wanted: Shape) -> View | None:
    """The view of ``reshape``, or None when the elements do not lie evenly spaced."""
    strides: dict[int, Dim] = {axis: 0 for axis, size in enumerate(wanted) if size == 1}
    groups = _match_groups(shape, wanted)
    for old_axes, new_axes in groups:
        stride = _collapsed_stride(view, shape, old_axes)
        if stride is None:
            return None
        for axis in reversed(new_axes):
            strides[axis] = stride
            stride = dim_mul(stride, wanted[axis])
    return View(tuple(strides[axis] for axis in range(len(wanted))), view.offset)


def _match_groups(shape: Shape, wanted: Shape) -> list[tuple[list[int], list[int]]]:
    """Cut both shapes into runs of equal element count, as short as can be shown; axes of size 1
    are left out."""
    old: list[int] = [axis for axis, size in enumerate(shape) if size != 1]
    new: list[int] = [axis for axis, size in enumerate(wanted) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while old and new:
        take_old: list[int] = [old.pop(0)]
        take_new: list[int] = [new.pop(0)]
        while True:
            left = dim_product(tuple(shape[axis] for axis in take_old))
            right = dim_product(tuple(wanted[axis] for axis in take_new))
            if left == right:
                break
            if old and (not new or _divides(left, right)):
                take_old.append(old.pop(0))
            elif new and (not old or _divides(right, left)):
                take_new.append(new.pop(0))
            else:
                return [*groups, *_match_ends((shape, take_old + old), (wanted, take_new + new))]
        groups.append((take_old, take_new))
    if old or new:
        groups.append((old, new))
    return groups


def _match_ends(
    old: tuple[Shape, list[int]], new: tuple[Shape, list[int]]
) -> list[tuple[list[int], list[int]]]:
    """Cut axes off the ends that have one size; of what is left nothing can be shown, but that it
    has one count: it is one run."""
    (shape, own), (wanted, others) = old, new
    ends: list[tuple[list[int], list[int]]] = []
    while own and others and shape[own[-1]] == wanted[others[-1]]:
        ends.append(([own[-1]], [others[-1]]))
        own, others = own[:-1], others[:-1]
    return [(own, others), *ends]


def _divides(divisor: Dim, dim: Dim) -> bool:
    return dim != 0 and divisor != 0 and dim_mod(dim, divisor) == 0


def _collapsed_stride(view: View, shape: Shape, axes: list[int]) -> Dim | None:
    """The common stride of a run of axes that lie as one, or None."""
    if not axes:
        return 1
    for outer, inner in pairwise(axes):
        if view.strides[outer] != dim_mul(view.strides[inner], shape[inner]):
            return None
    return view.strides[axes[-1]]


def lies_as_one(view: View, shape: Shape, axes: Sequence[int]) -> bool:
    """Whether the elements along some axes, the last of which is the innermost, lie evenly
    spaced."""
    return _collapsed_stride(view, shape, [axis for axis in axes if shape[axis] != 1]) is not None


def flat_offset(variable: Dim, extents: Shape, strides: Sequence[Dim]) -> Dim:
    """The offset of element ``variable`` of the row-major enumeration of ``extents``, axes merged
    where they lie as one."""
    merged: list[tuple[Dim, Dim]] = []
    for extent, stride in zip(extents, strides, strict=True):
        if extent == 1:
            continue
        if merged and merged[-1][1] == dim_mul(stride, extent):
            merged[-1] = (dim_mul(merged[-1][0], extent), stride)
        else:
            merged.append((extent, stride))
    if not merged:
        # All sizes are 1: the variable is 0, but a vector loop must still see where its lanes would
        # go.
        return dim_mul(variable, strides[-1]) if strides else 0
    offset: Dim = 0
    inner: Dim = 1
    for position, (extent, stride) in enumerate(reversed(merged)):
        quotient = dim_floordiv(variable, inner)
        index = quotient if position == len(merged) - 1 else dim_mod(quotient, extent)
        offset = offset + dim_mul(index, stride)
        inner = dim_mul(inner, extent)
    return offset


def flat_index(variable: Dim, extents: Shape, axis: int) -> Dim:
    """The index along ``axis`` of element ``variable`` of the row-major enumeration of
    ``extents``."""
    return flat_offset(
        variable, extents, [1 if position == axis else 0 for position in range(len(extents))]
    )


def storage_order(view: View, shape: Shape) -> tuple[int, ...]:
    """Axes from the largest stride to the smallest; axes of size 1 first, ties keep their place."""
    symbol_size = _symbol_size(shape)
    return tuple(
        sorted(range(len(shape)), key=lambda axis: _order_key(view, shape, axis, symbol_size))
    )


def _order_key(view: View, shape: Shape, axis: int, symbol_size: int) -> tuple[int, int]:
    # A stride that is a product of more sizes is larger.
    stride = _estimate(view.strides[axis], symbol_size)
    return -stride if shape[axis] != 1 else -(1 << 62), axis


def _symbol_size(shape: Shape) -> int:
    """What symbols are taken as: 64, or more where an axis would be empty then (the frames of a
    signal shorter than a frame), and its stride no larger than those of axes inside it."""
    sizes = (64 << bits for bits in range(0, _SYMBOL_BITS_MAX, 2))
    fits = (size for size in sizes if all(_is_open(dim, size) for dim in shape))
    return next(fits, 64)


def _is_open(dim: Dim, symbol_size: int) -> bool:
    return isinstance(dim, int) or _estimate(dim, symbol_size) > 1


def _estimate(dim: Dim, symbol_size: int) -> int:
    value = substitute(dim, dict.fromkeys(symbols_of(dim), symbol_size))
    return value if isinstance(value, int) else 0


def is_dense(view: View, shape: Shape) -> bool:
    """Whether the elements lie row-major without gaps from offset 0."""
    expected = dense_view(shape)
    same = all(
        size == 1 or have == want
        for size, have, want in zip(shape, view.strides, expected.strides, strict=True)
    )
    return same and view.offset == 0
