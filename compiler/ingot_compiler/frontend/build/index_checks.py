"""Indices and axes that must lie in a range: refused at compile time where they are known, at run
time otherwise.

In: a context, an integer tensor, the sizes of the axes it points into. Out: the tensor to use,
behind a core ``require`` where only a run can tell. Not done here: what is picked (``ops``);
kernels clamp, so that no index reads outside of a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.compose import binary_scalar, cast, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.ir.attributes import text_attribute
from ingot_compiler.ir.dims import Dim, dim_min
from ingot_compiler.ir.message import Text, joined, message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.rules.typing_rules import INTEGERS


def checked_indices(context: OpContext, indices: int, *sizes: Dim, what: str = "index") -> int:
    """``indices`` as i64, each in [-size, size); one size for all, or one for each column of the
    last axis."""
    sizes = (
        sizes[:1] if len(set(sizes)) == 1 else sizes
    )  # one limit for all takes no look at the column
    known = _known(context, indices)
    if known is not None and (known.size == 0 or len(sizes) in (1, _columns(context, indices))):
        for column, size in zip(known.reshape(-1, len(sizes)).T, sizes, strict=True):
            _check_known(context, column, size, what)
        return indices
    if context.dtype_of(indices) not in INTEGERS:
        return indices  # the type rule of what they pick says so
    wide = cast(context, indices, "i64")
    limit = context.integers(sizes)
    limit = reshape(context, limit, ()) if len(sizes) == 1 else limit
    inside = context.add("logical_and", context.add("less_equal", context.add("neg", limit), wide),
                         context.add("less", wide, limit))  # fmt: skip
    expected = joined(" x ", (message("[-", size, ", ", size, ")") for size in sizes))
    return checked(context, wide, inside, message(f"every {what} in ", expected))


def checked_vectors(context: OpContext, indices: int, sizes: Sequence[Dim]) -> int:
    """Index vectors [.., k], element j in [-sizes[j], sizes[j]); Unsupported when k, which fixes a
    rank, is not known."""
    shape = context.shape_of(indices)
    if not shape:
        return indices
    if not isinstance(shape[-1], int):
        raise Unsupported("index vectors of a length that is known at run time only")
    return (
        checked_indices(context, indices, *sizes[: shape[-1]])
        if 1 <= shape[-1] <= len(sizes)
        else indices
    )


def checked_axes(context: OpContext, axes: int, rank: int) -> int:
    """A tensor of axes, each in [-rank, rank), as i64 counted from the front."""
    wide = cast(context, checked_indices(context, axes, rank, what="axis"), "i64")
    negative = binary_scalar(context, "less", wide, 0)
    return context.add("select", negative, binary_scalar(context, "add", wide, rank), wide)


def checked_lengths(context: OpContext, lengths: int, most: Dim) -> int:
    """Lengths of sequences as i64, each in [0, most]."""
    wide, size = cast(context, lengths, "i64"), size_scalar(context, most)
    below, above = (
        context.add("less_equal", context.scalar("i64", 0), wide),
        context.add("less_equal", wide, size),
    )
    return checked(
        context,
        wide,
        context.add("logical_and", below, above),
        message("every length in [0, ", most, "]"),
    )


def chosen_along(context: OpContext, axis: int, results: Sequence[int], rank: int) -> int:
    """The result of the axis that an operand of one element names at run time; ``results``: those
    of axis 0, 1, .."""
    counted = checked_axes(context, reshape(context, axis, ()), rank)
    chosen = results[0]
    if len(results) == 1:
        return checked(context, chosen, binary_scalar(context, "equal", counted, 0), "axis 0")
    if len(results) < rank:
        below = binary_scalar(context, "less", counted, len(results))
        counted = checked(context, counted, below, f"an axis below {len(results)}")
    for other, result in enumerate(results[1:], 1):
        chosen = context.add(
            "select", binary_scalar(context, "equal", counted, other), result, chosen
        )
    return chosen


def not_zero(context: OpContext, x: int, what: str) -> int:
    """A tensor of numbers, none of them 0."""
    condition = context.add("logical_not", binary_scalar(context, "equal", x, 0))
    return checked(context, x, condition, f"a {what} other than 0")


def checked(context: OpContext, x: int, condition: int, expected: Text) -> int:
    """``x``, refused where the condition is false: now if that is seen, else at run time."""
    known_values = context.known_values(condition)
    seen: Sequence[object] = [None] if known_values is None else list(known_values.flat)
    if 0 in seen:
        raise OpTypeError(expected, "another")
    what = text_attribute(message("expected ", expected))
    return context.add("require", x, condition, what=what) if None in seen else x


def _columns(context: OpContext, indices: int) -> Dim:
    shape = context.shape_of(indices)
    return shape[-1] if shape else 1


def _known(context: OpContext, indices: int) -> npt.NDArray[np.int64] | None:
    """All elements that are known at compile time, flat."""
    ints = context.known_ints(indices)
    if ints is not None:
        return np.array(as_known_values(ints, (len(ints),)), np.int64)
    source = context.translation.stored.get(indices)
    return None if source is None else context.translation.elements(source).astype(np.int64)


def _check_known(context: OpContext, values: npt.NDArray[np.int64], size: Dim, what: str) -> None:
    if not values.size:
        return
    least, greatest = int(values.min()), int(values.max())
    needed = max(greatest + 1, -least)
    if isinstance(size, int) and needed > size:
        wrong = values[(values < -size) | (values >= size)][0]
        raise OpTypeError(f"every {what} in [-{size}, {size})", int(wrong))
    if needed > 1:  # that an axis is not empty is seen to where elements are taken from it
        got = least if needed == -least else greatest
        expected = message(f"every {what} in [-", size, ", ", size, ")")
        require_dim(context, dim_min(size - needed, 0), expected, got)
