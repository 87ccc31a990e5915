"""Lanes of several vectors combined at once: sums or greatest ones, one for each vector.

In: vectors. Out: a vector with what each came to. Not done here: what is summed.

Lane j meets lane j + half of the same vector, then the halves of that: the tree of one vector
alone, so its sum has the same bits, but a shuffle serves two vectors until one is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer

Combine = Callable[[LlvmValue, LlvmValue], LlvmValue]


def lanes_per_result(count: int, lanes: int) -> int:
    """How many lanes in turn hold the result of each of ``count`` vectors, at most ``lanes``."""
    return lanes // _padded(count)


def combined(w: Writer, vectors: Sequence[LlvmValue], combine: Combine) -> LlvmValue:
    """Return the results of up to as many vectors as lanes, in their order, each in
    ``lanes_per_result`` lanes."""
    size = vectors[0].lanes
    found = [*vectors, *[vectors[-1]] * (_padded(len(vectors)) - len(vectors))]
    while size > 1:
        half = len(found) // 2
        pairs = zip(found[:half], found[half:], strict=True) if half else [(found[0], found[0])]
        found = [_halved(w, left, right, size, combine) for left, right in pairs]
        size //= 2
    return found[0]


def _padded(count: int) -> int:
    """The next power of two."""
    bits = (count - 1).bit_length()
    return 1 << bits


def _halved(w: Writer, left: LlvmValue, right: LlvmValue, size: int, combine: Combine) -> LlvmValue:
    """In each block of ``size`` lanes, the block's two halves combined: of left, then of right."""
    lanes, half = left.lanes, size // 2
    starts = range(0, lanes, size)
    low, high = (
        [
            place
            for start in starts
            for first in (start, start + lanes)
            for place in range(first + at, first + at + half)
        ]
        for at in (0, half)
    )
    return combine(w.shuffle(left, low, right), w.shuffle(left, high, right))
