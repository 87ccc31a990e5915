"""The taps of a convolution that lie inside of its image, for large dilations, where many do not.

In: a convolution, pixels of a row of its result. Out: ranges of taps; whether it is worth while.
Not done here: the sums (``contraction``).

A tap outside of the image would add a product with 0, so that leaving it out changes no bit, unless
a weight is no finite number: then it adds nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from math import prod

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mul
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.kernels.products.convolution import TAP_NAMES, ConvShape
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape

_PART_MAX = 0.85  # of the taps: rows of their own are tiles of fewer rows
_TOGETHER = 8  # pixels of a tile, about
_OPEN_SIZE = 32  # of one that calls decide: what convolutions with large dilations are given


def skips_taps(conv: ConvShape, x: TensorType, shape: Shape) -> bool:
    """Whether so few taps are inside that looking for them is worth while, where weights are
    packed."""
    open_sizes = (_OPEN_SIZE,) * len(conv.kernel), [_OPEN_SIZE // step for step in conv.strides]
    sizes = [
        size if isinstance(size, int) else usual
        for size, usual in zip((*x.shape[2:], *shape[2:]), chain(*open_sizes), strict=True)
    ]
    pads = [pad for pad in conv.pads_before if isinstance(pad, int)]
    count = len(conv.kernel)
    if conv.groups != 1 or x.dtype not in FLOATS or len(pads) < count or 0 in sizes:
        return False
    parts = [_part(conv, axis, sizes[axis], sizes[count + axis]) for axis in range(count)]
    return prod(parts) <= _PART_MAX


def _part(conv: ConvShape, axis: int, size: int, results: int) -> float:
    """The taps of one axis that are inside, by all taps; along a row, of several pixels
    together."""
    together = min(_TOGETHER, results) if axis == len(conv.kernel) - 1 else 1
    firsts = range(0, results, together)
    ends = (min(first + together, results) - 1 for first in firsts)
    counts = (_span(conv, axis, size, *pair)[1] for pair in zip(firsts, ends, strict=True))
    total = sum(count for count in counts if isinstance(count, int))
    return total / (conv.kernel[axis] * len(firsts))


def spans_inside(
    conv: ConvShape,
    source: Shape,
    shape: Shape,
    names: Collection[str],
    row: Dim,
    first: Dim,
    last: Dim,
) -> Mapping[str, tuple[Dim, Dim]]:
    """For taps of ``names``: the first one that any pixel from ``first`` to ``last`` of a row of the
    result has, and how many there are; ``source`` and ``shape`` of the image and the result."""
    count = len(conv.kernel)
    where = Space(shape, (Run((0, *range(2, 1 + count)), row),))
    found: dict[str, tuple[Dim, Dim]] = {}
    for axis, name in enumerate(TAP_NAMES[:count]):
        if name in names:
            is_row = axis == count - 1
            ends = (first, last) if is_row else (where.index(2 + axis), where.index(2 + axis))
            found[name] = _span(conv, axis, source[2 + axis], *ends)
    return found


def _span(conv: ConvShape, axis: int, size: Dim, first: Dim, last: Dim) -> tuple[Dim, Dim]:
    """Taps t with 0 <= position * stride - pad + t * dilation < size for some position from
    ``first`` to ``last``."""
    stride, dilation, pad = conv.strides[axis], conv.dilations[axis], conv.pads_before[axis]
    begin, end = (dim_mul(position, stride) - pad for position in (first, last))
    start = dim_max(0, dim_floordiv(dilation - 1 - end, dilation))
    stop = dim_floordiv(size - begin + dilation - 1, dilation)
    stop = dim_min(conv.kernel[axis], dim_max(0, stop))
    return start, dim_max(stop - start, 0)
