"""Stores of lanes that lie a few elements apart: whole vectors are shuffled and stored under a mask,
since a scatter takes as long as a store for every lane.

In: the address of lane 0, the lanes, how they lie, a mask (None: all). Out: instructions; nothing
between the lanes is written. Not done here: other lanes (``memory``), loads (``spread_loads``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.lanes import mask_of
from ingot_compiler.codegen.emit.operands import i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constants
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.targets.target import Target

_STEP_MAX = 4  # elements from lane to lane up to which vectors are stored
_NEVER = 0x7FFFFFFF


def stores_vectors(target: Target, step: object) -> bool:
    """Whether lanes so far from each other are stored so: where masks have registers."""
    return isinstance(step, int) and 1 < step <= _STEP_MAX and "avx512bw" in target.features


def store_apart(
    w: Writer,
    pointer: LlvmValue,
    value: LlvmValue,
    step: int,
    mask: LlvmValue | None,
    left: LlvmValue | None = None,
) -> None:
    """Each lane ``step`` elements behind the one before. ``left``: how many lanes there are, i32,
    where they are all that the mask leaves and only a run knows it."""
    lanes = value.lanes
    for start in range(0, step * (lanes - 1) + 1, lanes):
        places = [divmod(start + place, step) for place in range(lanes)]
        whole = [lane if not rest and lane < lanes else None for lane, rest in places]
        vector = w.shuffle(value, [0 if lane is None else lane for lane in whole])
        address = w.offset(pointer, i64(start), value.element)
        w.masked_store(vector, address, _mask(w, whole, mask, left))


def _mask(
    w: Writer, places: list[int | None], mask: LlvmValue | None, left: LlvmValue | None
) -> LlvmValue:
    """Which elements of a vector are lanes that are stored."""
    if mask is None:
        return constants([int(lane is not None) for lane in places], "i1")
    if left is not None:
        return mask_of(w, [_NEVER if lane is None else lane for lane in places], left)
    lanes = mask.lanes
    order = [lanes if lane is None else lane for lane in places]
    return w.shuffle(mask, order, zeros("i1", lanes))
