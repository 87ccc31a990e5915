"""Blocks of an image, which may overlap, added into the image.

In: [images, *block, *blocks], how blocks lie along each axis. Out: ``fold_blocks``: [images, *image].
Not done here: attributes (``ops/col2_im``).

Elements of a block that lie within one stride of each other never meet those of another block
there: side by side they are an image of their own. There are as many such images as blocks that
overlap, moved by whole strides, and their sum is the result. Nothing is multiplied, so that an
infinity stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ingot_compiler.frontend.build.compose import reshape, slice_axis, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_runtime.lazy_dataclass import dataclass

SUMMANDS_MAX = 64
"""The most summands of one kernel."""


@dataclass(frozen=True, slots=True)
class _Part:
    """``count`` elements of a block from ``first`` on: ``phase`` within a stride, moved by ``shift``."""

    first: int
    count: int
    phase: int
    shift: int


@dataclass(frozen=True, slots=True)
class FoldAxis:
    """One axis: elements of a block, how far blocks and their elements are apart; an image of
    ``size`` with its pads."""

    block: int
    stride: int
    dilation: int
    before: int
    after: int
    size: Dim

    @property
    def parts(self) -> list[_Part]:
        """All elements of a block; those that are apart are each alone."""
        stride = self.stride
        if self.dilation == 1:
            starts = range(0, self.block, stride)
            return [_Part(at, min(stride, self.block - at), 0, at) for at in starts]
        places = (element * self.dilation for element in range(self.block))
        return [
            _Part(element, 1, at % stride, at - at % stride) for element, at in enumerate(places)
        ]

    @property
    def reach(self) -> int:
        """How far the last part is moved."""
        return max(part.shift for part in self.parts)

    @property
    def margins(self) -> tuple[int, int]:
        """Zeros around the sum, so that it has all of the image: pads may be negative, and behind
        the last block there may be less than a stride."""
        return max(0, -self.before), max(0, -self.after) + self.stride - 1


def fold_blocks(context: OpContext, columns: int, axes: Sequence[FoldAxis]) -> int:
    """The sum over all parts of blocks, along one axis after the other where that is many."""
    every = range(len(axes))
    if prod(len(axis.parts) for axis in axes) <= SUMMANDS_MAX:
        folded = _fold(context, columns, axes, every)
    else:
        folded = columns
        for number in every:
            folded = _fold(context, folded, axes, (number,))
    images, *_ = context.shape_of(columns)
    return reshape(context, folded, (images, *(axis.size for axis in axes)))


def _fold(context: OpContext, columns: int, axes: Sequence[FoldAxis], chosen: Sequence[int]) -> int:
    """Fold the chosen axes: along them the image is where the blocks were, and a block has one
    element."""
    total = -1
    for number, parts in enumerate(product(*(axes[index].parts for index in chosen))):
        own, pads = columns, dict[int, tuple[int, int]]()
        for index, part in zip(chosen, parts, strict=True):
            axis = axes[index]
            own = _side_by_side(context, own, (1 + index, 1 + len(axes) + index), axis, part)
            first, last = axis.margins
            pads[1 + len(axes) + index] = (part.shift + first, axis.reach - part.shift + last)
        own = _padded(context, own, pads)
        total = context.add("add", total, own) if number else own
    for index in chosen:
        start = axes[index].before + axes[index].margins[0]
        total = slice_axis(context, total, 1 + len(axes) + index, start, axes[index].size)
    return total


def _side_by_side(
    context: OpContext, columns: int, places: tuple[int, int], axis: FoldAxis, part: _Part
) -> int:
    """A part of all blocks as an image, along the axis of blocks."""
    of_block, of_blocks = places
    own = slice_axis(context, columns, of_block, part.first, part.count)
    own = _padded(context, own, {of_block: (part.phase, axis.stride - part.phase - part.count)})
    order = [place for place in range(len(context.shape_of(own))) if place != of_block]
    order.insert(of_blocks, of_block)
    shape = list(context.shape_of(own))
    shape[of_block], shape[of_blocks] = 1, dim_mul(shape[of_blocks], axis.stride)
    return reshape(context, transpose(context, own, order), shape)


def _padded(context: OpContext, x: int, pads: dict[int, tuple[int, int]]) -> int:
    """Zeros before and behind, by axis."""
    both = [pads.get(axis, (0, 0)) for axis in range(len(context.shape_of(x)))]
    before, after = ([pad[side] for pad in both] for side in (0, 1))
    if not any((*before, *after)):
        return x
    zero = context.scalar(context.dtype_of(x), 0)
    return context.add("pad", x, zero, before=tuple(before), after=tuple(after), mode="constant")
