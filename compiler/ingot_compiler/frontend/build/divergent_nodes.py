"""Nodes whose results may be of two types, by a condition that only a run knows.

In: the context of an If, or of a Squeeze without axes over a size that may be 1. Out:
``DivergentNode``, or the result of a Squeeze that nothing follows. Not done here: what follows from
such a node (``divergent_branches``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import DivergentNode
from ingot_compiler.frontend.build.operand_sizes import require_other_sizes
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Shaped
from ingot_compiler.frontend.families.sequences.ragged import flat
from ingot_compiler.frontend.families.tensors.selection import positions_of_true
from ingot_compiler.ir.sizes.ranges import at_most


def divergent_if(context: OpContext) -> DivergentNode:
    """Both branches of an If."""
    then, otherwise = context.body("then_branch"), context.body("else_branch")
    condition = reshape(context, context.operand(0), ())
    return DivergentNode(condition, then.translate, otherwise.translate)


def divergent_squeeze(context: OpContext) -> DivergentNode | None:
    """With the first size that may be 1, and without; None for another Squeeze. Any further such
    size is taken to be another than 1."""
    x = context.operand(0)
    has_axes = "axes" in context.attributes or len(context.given()) > 1
    if has_axes or x < 0:
        return None
    shape = context.shape_of(x)
    free = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
    axis = next((axis for axis in free if not at_most(2, shape[axis])), None)
    if axis is None:
        return None
    condition = binary_scalar(context, "equal", size_scalar(context, shape[axis]), 1)

    def without(inner: int | None) -> Sequence[int]:
        """X without the sizes of 1, the one of an axis among them."""
        kept = [(at, size) for at, size in enumerate(shape) if size != 1 and at != inner]
        require_other_sizes(context, [(at, size) for at, size in kept if at != axis])
        return (reshape(context, x, [size for _, size in kept]),)

    return DivergentNode(
        condition, lambda _: without(axis), lambda _: without(None), is_default=True
    )


def squeezed_output(context: OpContext) -> int:
    """X without all its sizes of 1, of a rank that a run decides: its elements stay as they are."""
    x = context.operand(0)
    sizes = context.integers(context.shape_of(x))
    is_kept = context.add("logical_not", binary_scalar(context, "equal", sizes, 1))
    kept = positions_of_true(context, is_kept)
    return add_value(context, Shaped(flat(context, x), context.add("gather", sizes, kept, axis=0)))
