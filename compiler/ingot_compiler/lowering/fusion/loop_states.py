"""The carried values of a loop: each has one buffer, its state.

In: first values, and those that an iteration leaves. Out: buffers, and the steps that fill them.
Not done here: the loop (``control``).

The new value is copied into its state at the end of an iteration, or computed there if nobody needs
the old one any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.ops.loop import CONTROL
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.fusion.control_symbols import (
    Sizes,
    new_buffer,
    set_symbols,
    store_dense,
)
from ingot_compiler.lowering.fusion.deferred import Deferred
from ingot_compiler.lowering.fusion.flatten import FlatRegion
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.relayout import relaid
from ingot_compiler.lowering.groups.views import dense_view


def new_state(fuser: Fuser, initial: int, inside: int) -> int:
    """The buffer of the carried value ``inside``, holding the first one."""
    outer, tensor_type = fuser.values.type_of(initial), fuser.values.type_of(inside)
    set_symbols(fuser, list(zip(tensor_type.shape, outer.shape, strict=True)))
    buffer = new_buffer(fuser, tensor_type)
    store_dense(fuser, initial, buffer)
    return buffer


def store_states(fuser: Fuser, region: FlatRegion, states: Sequence[int]) -> None:
    """The new carried values into their buffers, then their sizes; what is still read is not
    overwritten."""
    before, after = region.inputs[CONTROL:], region.outputs[1 : 1 + len(states)]
    pairs = zip(before, after, states, strict=True)
    waiting = [(value, buffer) for old, value, buffer in pairs if value != old]
    sizes = [
        pair for old, value in zip(before, after, strict=True) for pair in _sizes(fuser, old, value)
    ]
    # One pair at a time: looking at a pair may compute its value.
    while free := next((pair for pair in waiting if _may_overwrite(fuser, *pair, waiting)), None):
        waiting.remove(free)
        store_dense(fuser, *free)
    for value, _ in waiting:  # those that are left read the states of one another
        if fuser.where(value).buffer in states:
            fuser.storage.put(value, relaid(fuser, value, range(fuser.values.type_of(value).rank)))
    for pair in waiting:
        store_dense(fuser, *pair)
    set_symbols(fuser, sizes)


def _sizes(fuser: Fuser, old: int, new: int) -> Sizes:
    """The sizes of a carried value, and what they become."""
    shape = fuser.values.type_of(old).shape
    return list(zip(shape, fuser.values.type_of(new).shape, strict=True))


def _may_overwrite(
    fuser: Fuser, value: int, buffer: int, waiting: Sequence[tuple[int, int]]
) -> bool:
    """Whether a value can go into a state at once: no other waiting value reads it, nor itself but
    element by element."""
    others = (other for other, _ in waiting if other != value)
    if any(buffer in _reads(fuser, other) for other in others):
        return False
    if buffer not in _reads(fuser, value):
        return True
    deferred = fuser.deferred(value)
    if deferred is None or fuser.values.use_count(value) != 1 or fuser.storage.grows(buffer):
        return False
    return _is_pointwise(fuser, deferred) and all(
        stored.buffer != buffer or stored.view == dense_view(fuser.values.type_of(value).shape)
        for _, stored in deferred.leaves
    )


def _is_pointwise(fuser: Fuser, deferred: Deferred) -> bool:
    ops = fuser.ops_of(deferred)
    return not deferred.anchored and all(
        Trait.ELEMENTWISE in OPS_BY_NAME[op].traits for op in ops if op != "literal"
    )


def _reads(fuser: Fuser, value: int) -> set[int]:
    """Buffers that storing a value reads."""
    deferred = fuser.deferred(value)
    if deferred is not None:
        return {stored.buffer for _, stored in deferred.leaves}
    return {fuser.where(value).buffer}
