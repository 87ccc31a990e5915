"""Sizes of operands: what an op asks of them, and what follows from them.

In: a context, value ids and shapes. Out: sizes, or the refusal of a node. Not done here: sizes that
must be equal by the type rule of a core op (``unify_sizes``), windows (``windows``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.frontend.build.compose import as_vector, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.attributes import text_attribute
from ingot_compiler.ir.dims import Dim, dim_add, dim_max, dim_min
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import at_most
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol


def sizes_of(context: OpContext, x: int, *ranks: int) -> tuple[Dim, ...]:
    """The shape of ``x``; OpTypeError unless its rank is one of ``ranks``."""
    if context.rank_of(x) not in ranks:
        raise OpTypeError(f"an operand of rank {' or '.join(map(str, ranks))}", context.type_of(x))
    return context.shape_of(x)


def known_sizes(context: OpContext, x: int, rank: int) -> tuple[int, ...]:
    """The shape of an operand of ``rank`` whose sizes are numbers, as those of constants are."""
    shape = sizes_of(context, x, rank)
    known = tuple(size for size in shape if isinstance(size, int))
    if len(known) < rank:
        raise OpTypeError("sizes that are numbers", context.type_of(x))
    return known


def sizes_from(context: OpContext, x: int, rank_min: int) -> tuple[Dim, ...]:
    """The shape of ``x``; OpTypeError when its rank is below ``rank_min``."""
    if context.rank_of(x) < rank_min:
        raise OpTypeError(f"an operand of rank >= {rank_min}", context.type_of(x))
    return context.shape_of(x)


def read_size(context: OpContext, x: int) -> Dim:
    """The one element of an integer tensor; OpTypeError when it has none or several."""
    sizes = context.read_dims(x)
    if len(sizes) != 1:
        raise OpTypeError("one integer", context.type_of(x))
    return sizes[0]


def require_dim(context: OpContext, difference: Dim, expected: Text, got: Dim) -> None:
    """Refuse the node unless a size expression is 0: now if its value is known, else at run
    time."""
    if isinstance(difference, int) and difference:
        raise OpTypeError(expected, got)
    if difference != 0:
        what = message("expected ", expected, ", got ", got)
        context.add("require_dim", difference=difference, what=text_attribute(what))


def with_size(context: OpContext, x: int, axis: int, size: int, expected: Text) -> int:
    """``x`` with ``size`` elements along an axis, as types say from here on. A size that is an
    expression is compared at run time; OpTypeError, in terms of ``expected``, for another
    number."""
    shape = list(context.shape_of(x))
    own = shape[axis]
    if own == size:
        return x
    if isinstance(own, int):
        raise OpTypeError(expected, context.type_of(x))
    require_dim(context, dim_add(own, -size), expected, own)
    shape[axis] = size
    return reshape(context, x, shape)


def with_fixed_size(context: OpContext, x: int, axis: int, size: int, expected: Text) -> int:
    """Give ``x`` ``size`` elements along an axis, as ``with_size`` does; where ``x`` is an input of
    the model, the size is fixed from now on, so that no caller states it."""
    name = bare_symbol(context.shape_of(x)[axis])
    if name is not None and x in context.translation.builder.inputs:
        context.translation.same_names.fix(name, size)
    return with_size(context, x, axis, size, expected)


def with_count(context: OpContext, x: int, count: int, what: str) -> int:
    """A list of ``count`` integers or floats, one of rank 0 too, as ``with_size``; ``what`` they
    are, in the plural."""
    return with_size(context, as_vector(context, x), 0, count, f"{count} {what}")


def require_other_sizes(context: OpContext, sizes: Iterable[tuple[int, Dim]]) -> None:
    """Refuse a call in which the size of one of these axes is 1: a Squeeze without axes would leave
    another rank than the one compiled."""
    for axis, size in sizes:
        if not isinstance(size, int) and not at_most(2, size):
            is_one = dim_min(size, 1) - dim_min(dim_max(size - 1, 0), 1)
            require_dim(context, is_one, f"a size other than 1 at axis {axis}, or axes", size)
