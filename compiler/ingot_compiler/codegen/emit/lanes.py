"""The lanes of a vector: their numbers, masks of those that exist, loads under a mask.

In: numbers of lanes, extents. Out: masks (i1 lanes; None: all lanes), instructions. Not done here:
which lanes a guard leaves (``context``), buffers and indices (``memory``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.llvm_value import LlvmValue, constant, constants
from ingot_compiler.codegen.writer import Writer


def lane_numbers(lanes: int, element: str = "i64") -> LlvmValue:
    """``<0, 1, 2, ...>``."""
    return constants(range(lanes), element)


def all_lanes(lanes: int) -> LlvmValue:
    """The mask that holds everywhere."""
    return constant(1, "i1", lanes)


def known_tail_mask(count: int, lanes: int) -> LlvmValue | None:
    """The lanes that exist of the last vector of ``count`` elements; None where it is whole."""
    rest = count % lanes
    return constants([int(lane < rest) for lane in range(lanes)], "i1") if rest else None


def tail_mask(w: Writer, first: LlvmValue, extent: LlvmValue, lanes: int) -> LlvmValue:
    """The lanes j of ``lanes`` with ``first + j < extent``."""
    return mask_of(w, range(lanes), iterations_left(w, first, extent))


def iterations_left(w: Writer, first: LlvmValue, extent: LlvmValue) -> LlvmValue:
    """How many iterations there are from one on, i32."""
    return w.convert("trunc", w.sub(extent, first), "i32")


def mask_of(w: Writer, numbers: Sequence[int], left: LlvmValue) -> LlvmValue:
    """A lane for each number that is below ``left``. Lanes that are taken from a mask instead, in
    another order, are taken one by one where masks have registers of their own."""
    return w.compare("ult", constants(numbers, "i32"), w.splat(left, len(numbers)))


def load_lanes(
    w: Writer, pointer: LlvmValue, element: str, lanes: int, mask: LlvmValue | None
) -> LlvmValue:
    """Contiguous lanes; where a mask does not hold nothing is read, and the lane is 0."""
    if mask is None:
        return w.load(pointer, element, lanes)
    return w.masked_load(pointer, mask, element)
