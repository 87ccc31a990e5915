"""Loads of lanes that lie a few elements apart, or backwards, or that repeat an element: whole
vectors are loaded and shuffled, since a gather takes as long as a load for every lane.

In: the address of lane 0, how the lanes lie, a mask (None: all). Out: the lanes; 0 where the mask
does not hold, and nothing is read there. Not done here: other lanes (``memory``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.lanes import known_tail_mask, load_lanes, mask_of
from ingot_compiler.codegen.emit.operands import i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer

APART_MAX = 4
"""Elements from lane to lane up to which vectors are loaded."""
_NEVER = 0x7FFFFFFF


def load_apart(
    w: Writer,
    pointer: LlvmValue,
    element: str,
    lanes: int,
    step: int,
    mask: LlvmValue | None,
    count: int | None = None,
    left: LlvmValue | None = None,
) -> LlvmValue:
    """Every ``step``-th element, from 2 to ``APART_MAX``; none behind the last lane's is read.
    ``count``: the first lanes, which alone are in the mask; what they do not need is not loaded.
    ``left``: their number, i32, where only a run knows it."""
    last = (step - 1) * (lanes - 1)  # where the last vector begins, so that it ends with that one
    starts = (*range(0, (step - 1) * lanes, lanes), last)
    if mask is not None and count is not None:
        starts = tuple(range(0, step * (count - 1) + 1, lanes))
    found: LlvmValue | None = None
    for start in starts:
        own = None if mask is None else _spread_mask(w, mask, start, step, left)
        vector = load_lanes(w, w.offset(pointer, i64(start), element), element, lanes, own)
        places = [step * lane - start for lane in range(lanes)]
        if found is None:
            found = w.shuffle(vector, [at if at < lanes else 0 for at in places])
        else:
            order = [lanes + at if 0 <= at < lanes else lane for lane, at in enumerate(places)]
            found = w.shuffle(found, order, vector)
    assert found is not None
    return found


def _spread_mask(
    w: Writer, mask: LlvmValue, start: int, step: int, left: LlvmValue | None
) -> LlvmValue:
    """Which of the elements from ``start`` on are those of a lane that exists."""
    lanes = mask.lanes
    wanted = [divmod(start + place, step) for place in range(lanes)]
    if left is not None:
        return mask_of(w, [_NEVER if rest else lane for lane, rest in wanted], left)
    order = [lanes if rest else lane for lane, rest in wanted]
    return w.shuffle(mask, order, zeros("i1", lanes))


def load_backwards(
    w: Writer, pointer: LlvmValue, element: str, lanes: int, mask: LlvmValue | None
) -> LlvmValue:
    """Each element in front of that of the lane before."""
    order = range(lanes - 1, -1, -1)
    own = None if mask is None else w.shuffle(mask, order)
    first = w.offset(pointer, i64(1 - lanes), element)
    return w.shuffle(load_lanes(w, first, element, lanes, own), order)


def load_places(
    w: Writer, pointer: LlvmValue, element: str, width: int, count: int, places: Sequence[int]
) -> LlvmValue:
    """One of ``count`` elements for each lane, which one vector of ``width`` holds."""
    vector = load_lanes(w, pointer, element, width, known_tail_mask(count, width))
    return w.shuffle(vector, places)


def load_repeated(
    w: Writer,
    pointer: LlvmValue,
    element: str,
    lanes: int,
    times: int,
    mask: LlvmValue | None,
    left: LlvmValue | None = None,
) -> LlvmValue:
    """Each element for ``times`` lanes, of which ``lanes`` is a multiple. ``left``: as above."""
    count = lanes // times
    own, firsts = mask, [times * place for place in range(count)]
    if mask is not None:
        own = w.shuffle(mask, firsts) if left is None else mask_of(w, firsts, left)
    vector = load_lanes(w, pointer, element, count, own)
    return w.shuffle(vector, [lane // times for lane in range(lanes)])
