"""A stored value in the layout that its reader needs: the value itself where it has that layout,
else a copy.

In: the fuser, a value. Out: where it lies so. Not done here: which layout an op asks for (its
anchor).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import Halo, channels_last
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import Copy, View
from ingot_compiler.lowering.groups.views import is_dense, storage_order


def relaid(fuser: Fuser, value: int, order: Sequence[int], halo: Halo | None = None) -> Stored:
    """A copy of a value in another layout."""
    tensor_type, device = fuser.values.type_of(value), fuser.values.device_of(value)
    place = fuser.storage.workspace(tensor_type, order, device, halo)
    fuser.copy(value, place)
    if halo is not None:
        fuser.fill_halo(value, place, halo)
    return place


def dense(fuser: Fuser, value: int) -> Stored:
    """The value row-major without gaps."""
    stored, tensor_type = fuser.where(value), fuser.values.type_of(value)
    fits = is_dense(View(stored.view.strides), tensor_type.shape)
    return stored if fits else _row_major(fuser, value)


def contiguous(fuser: Fuser, value: int) -> Stored:
    """The value with stride 1 along its last axis."""
    stored, tensor_type = fuser.where(value), fuser.values.type_of(value)
    if stored.view.strides[-1] == 1 or tensor_type.shape[-1] == 1:
        return replace(stored, view=View((*stored.view.strides[:-1], 1), stored.view.offset))
    return _row_major(fuser, value)


def _row_major(fuser: Fuser, value: int) -> Stored:
    """A row-major copy, made once for all users of the value; by the build of what it knows."""
    made = fuser.storage.find_copy(value)
    if made is None and fuser.values.is_constant(value):
        made = fuser.folded(value)
        fuser.storage.put_copy(value, made)
    if made is None:
        made = relaid(fuser, value, range(fuser.values.type_of(value).rank))
        fuser.storage.put_copy(value, made)
    return made


def image(fuser: Fuser, value: int, halo: Halo) -> Stored:
    """The value channels-last with at least ``halo`` around it; made once, for all users of the
    value but those that want something else around it than others do."""
    wanted = fuser.values.halo_of(value) or halo
    if not halo.is_empty and halo.value != wanted.value:
        return _made_image(fuser, value, halo)
    if fuser.storage.find_image(value) is None:
        stored = fuser.where(value)  # may make the image
        if fuser.storage.find_image(value) is None:
            if halo.is_empty and _lies_as_image(stored.view):
                return stored
            fuser.storage.put_image(value, _made_image(fuser, value, wanted))
    made = fuser.storage.find_image(value)
    assert made is not None
    return made


def _made_image(fuser: Fuser, value: int, halo: Halo) -> Stored:
    order = channels_last(fuser.values.type_of(value).rank)
    return relaid(fuser, value, order, None if halo.is_empty else halo)


def _lies_as_image(view: View) -> bool:
    """Whether channels lie together, and no pixel is repeated."""
    return view.strides[1] == 1 and all(stride != 0 for stride in view.strides[2:])


def transfer(fuser: Fuser, value: int, result: int, source: tuple[int, ...]) -> None:
    """Copy a stored value to the device of ``result``: its whole buffer, in the layout that it has.

    A value that is only a part of its buffer is cut out first. One without elements is there with
    its buffer: no kernel writes it, and nothing is to be copied.
    """
    stored, tensor_type = fuser.where(value), fuser.values.type_of(value)
    if typical(fuser.storage.spec(stored.buffer).element_count) > typical(
        tensor_type.element_count
    ):
        stored = relaid(fuser, value, storage_order(stored.view, tensor_type.shape))
    device = fuser.values.device_of(result)
    spec = replace(fuser.storage.spec(stored.buffer), kind="workspace", index=-1, device=device)
    buffer = fuser.storage.add(spec)
    if tensor_type.element_count != 0:
        fuser.append(Copy(stored.buffer, buffer, source))
    fuser.storage.put(result, Stored(buffer, stored.view))
