"""Makes the shape constraints of type rules: one that numbers show to be false is refused at once
(expected, got).

In: sizes, with their places where the frontend may rewrite them. Out: shape constraints, none where
all is seen to hold, or ``OpTypeError``. Not done here: what becomes of them
(``shape_constraints``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ingot_compiler.ir.dims import Dim, dim_max, dim_min, dim_mod, dim_mul, dim_product
from ingot_compiler.ir.message import joined, message
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.shapes import broadcast_shapes
from ingot_compiler.ir.shape_constraints import BroadcastSizes, EqualSizes, Shape, Size, SizeBound
from ingot_compiler.ir.sizes.ranges import at_most
from ingot_compiler.ir.types import TensorType

_CACHED_MAX = 1 << 12


def sizes_of(types: Sequence[TensorType], operand: int) -> tuple[Size, ...]:
    """The sizes of an operand with their places."""
    return tuple(Size(dim, operand, axis) for axis, dim in enumerate(types[operand].shape))


def equal(what: str, *sizes: Size | Dim) -> EqualSizes:
    """All sizes are equal; ``what`` they are, in the plural."""
    constraint = EqualSizes(sizes, what)
    numbers = list(dict.fromkeys(dim for dim in constraint.dims if isinstance(dim, int)))
    require(len(numbers) <= 1, f"equal {what}", " and ".join(map(str, numbers)))
    return constraint


def equal_shapes(what: str, *shapes: Sequence[Size | Dim]) -> tuple[EqualSizes, ...]:
    """All shapes are equal, axis by axis; ``what`` their sizes are, in the plural."""
    if len(set(map(len, shapes))) != 1:
        raise OpTypeError(
            f"equal {what}",
            joined(" and ", (list(EqualSizes(tuple(shape), "").dims) for shape in shapes)),
        )
    return tuple(equal(what, *column) for column in zip(*shapes, strict=True))


def same_count(shape: Shape, wanted: Shape) -> tuple[SizeBound, ...]:
    """Two shapes have one number of elements."""
    before, after = dim_product(shape), dim_product(wanted)
    equal("element counts", before, after)
    what = message("cannot reshape ", before, " elements to ", after)
    return (SizeBound(before - after, what),) if before != after else ()


def broadcast_together(shapes: Iterable[Shape]) -> BroadcastSizes:
    """The leading axes of operands 0, 1, .. broadcast together, as in numpy."""
    return _broadcast_together(tuple(shapes))


@lru_cache(maxsize=_CACHED_MAX)  # a graph has many operations on few shapes
def _broadcast_together(shapes: tuple[Shape, ...]) -> BroadcastSizes:
    return BroadcastSizes(shapes, broadcast_shapes(*shapes), tuple(range(len(shapes))))


def broadcasts_to(shape: Shape, target: Shape) -> BroadcastSizes:
    """A shape broadcasts to ``target`` without changing it."""
    fits = len(shape) <= len(target) and all(
        size in (1, to) or not (isinstance(size, int) and isinstance(to, int))
        for size, to in zip(reversed(shape), reversed(target), strict=False)
    )
    if not fits:
        raise OpTypeError(message("a shape that broadcasts to ", list(target)), list(shape))
    return BroadcastSizes((shape,), target)


def groups_divide(groups: int, channels: Dim, what: str) -> tuple[SizeBound, ...]:
    """``groups`` >= 1 divide channels; ``what`` channels, in the plural."""
    fits = groups >= 1 and (not isinstance(channels, int) or channels % groups == 0)
    if not fits:
        raise OpTypeError(message("groups that divide ", channels, " ", what), groups)
    rest = dim_mod(channels, groups)
    return (
        (SizeBound(rest, message(groups, " groups do not divide ", channels, " ", what)),)
        if rest != 0
        else ()
    )


def not_above(size: Dim, limit: Dim, what: str) -> tuple[SizeBound, ...]:
    """``size <= limit``."""
    if at_most(size, limit):
        return ()
    excess = dim_max(size - limit, 0)
    if isinstance(excess, int):
        raise OpTypeError(message(what, " to be at most ", limit), size)
    return (SizeBound(excess, message(what, ": expected at most ", limit, ", got ", size)),)


def elements_along(extent: Dim, picked: Shape) -> tuple[SizeBound, ...]:
    """An axis that elements are taken from is not empty, unless none is taken; ``picked``: the
    shape of those that are."""
    if at_most(1, extent) or 0 in picked:
        return ()
    # Not their number: a product of sums has very many terms.
    is_any = dim_product(tuple(dim_min(size, 1) for size in picked))
    excess = dim_mul(1 - dim_min(extent, 1), is_any)
    if isinstance(excess, int):
        what = message("none, from which a tensor of ", picked, " is taken")
        raise OpTypeError("elements along the axis", what)
    return (SizeBound(excess, "elements are taken from an empty axis"),)


def inside_axis(length: Dim, start: Dim, size: Dim, step: int) -> tuple[SizeBound, ...]:
    """``size`` elements from ``start`` on, ``step`` apart, lie on an axis; none may start
    anywhere."""
    require(step != 0, "a step other than 0", step)
    last = start + dim_mul(size - 1, step)
    low, high = (start, last) if step > 0 else (last, start)
    if isinstance(low, int) and isinstance(high, int) and size != 0:
        inside = low >= 0 and (not isinstance(length, int) or high < length)
        if not inside:
            raise OpTypeError(message("indices in [0, ", length, ")"), f"{low} .. {high}")
    if at_most(0, low) and at_most(high, length - 1):
        return ()
    beyond = dim_max(high + 1 - length, 0) - dim_min(low, 0)
    excess = dim_mul(beyond, dim_min(size, 1))
    return (
        (SizeBound(excess, message("a slice leaves its axis of size ", length)),)
        if excess != 0
        else ()
    )
