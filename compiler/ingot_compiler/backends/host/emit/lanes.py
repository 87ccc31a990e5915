"""The lanes of a vector: their numbers, masks of those that exist, loads under a mask, other lanes
of the same bits.

In: numbers of lanes, extents. Out: masks (i1 lanes; None: all lanes), instructions. Not done here:
which lanes a guard leaves (``context``), buffers and indices (``memory``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, constants, vector_type
from ingot_compiler.backends.host.writer import Writer


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
    left = w.convert("trunc", w.sub(extent, first), "i32")
    return w.compare("ult", lane_numbers(lanes, "i32"), w.splat(left, lanes))


def as_lanes(writer: Writer, value: LlvmValue, element: str, lanes: int) -> LlvmValue:
    """The bits of a vector as other lanes."""
    text = f"bitcast {value.typed} to {vector_type(element, lanes)}"
    return writer.define(text, element, lanes)


def load_lanes(
    w: Writer, pointer: LlvmValue, element: str, lanes: int, mask: LlvmValue | None
) -> LlvmValue:
    """Contiguous lanes; where a mask does not hold nothing is read, and the lane is 0."""
    if mask is None:
        return w.load(pointer, element, lanes)
    return w.masked_load(pointer, mask, element)
