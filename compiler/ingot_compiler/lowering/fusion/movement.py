"""Ops that only move data: most become views of the stored operand.

In: a node and the fuser. Out: a stored value. Not done here: gathers and pads (elements of any
kernel).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.ranges import upper_bound
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import IMAGE_RANK_MIN, channels_last
from ingot_compiler.lowering.fusion.pixel_blocks import stores_pixel_blocks
from ingot_compiler.lowering.fusion.relayout import dense, transfer
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import SymbolRead, SymbolSet
from ingot_compiler.lowering.groups.views import (
    broadcast_view,
    reshape_view,
    slice_view,
    transpose_view,
)
from ingot_compiler.lowering.kinds.kind import ResultLayout

MovementRule = Callable[[Fuser, Node], None]


def reshape(fuser: Fuser, node: Node) -> None:
    """A view where the elements lie evenly, else one copy; channels may go where they belong, and a
    size as a number is no element of memory: kernels are told it."""
    if stores_pixel_blocks(fuser, node):
        return
    operand, result = node.operands[0], node.results[0]
    shape, wanted = fuser.values.type_of(operand).shape, fuser.values.type_of(result).shape
    made = fuser.values.maker(operand)
    if not wanted and made is not None and made.op == "dim_values":
        fuser.defer_added(replace(made, results=(result,)))
        return
    if fuser.deferred(operand) is not None and _joined_axis(fuser, node) is not None:
        return  # it is computed where the concat wants it
    stored = fuser.where(operand)
    view = reshape_view(stored.view, shape, wanted)
    if view is None:
        stored = dense(fuser, operand)
        view = reshape_view(stored.view, shape, wanted)
    assert view is not None
    fuser.storage.put(result, Stored(stored.buffer, view))


def transpose(fuser: Fuser, node: Node) -> None:
    """Permuted strides."""
    stored = fuser.where(node.operands[0])
    view = transpose_view(stored.view, node.ints("permutation"))
    fuser.storage.put(node.results[0], Stored(stored.buffer, view))


def slice_(fuser: Fuser, node: Node) -> None:
    """Shifted offset, scaled strides."""
    stored = fuser.where(node.operands[0])
    view = slice_view(stored.view, node.dims("starts"), node.ints("steps"))
    fuser.storage.put(node.results[0], Stored(stored.buffer, view))


def broadcast_to(fuser: Fuser, node: Node) -> None:
    """Strides of 0."""
    operand, result = node.operands[0], node.results[0]
    stored = fuser.where(operand)
    view = broadcast_view(
        stored.view, fuser.values.type_of(operand).shape, fuser.values.type_of(result).shape
    )
    fuser.storage.put(result, Stored(stored.buffer, view))


def concat(fuser: Fuser, node: Node) -> None:
    """One buffer; every operand is computed, or copied, into its part."""
    values, result = fuser.values, node.results[0]
    tensor_type, halo, axis = values.type_of(result), values.halo_of(result), node.integer("axis")
    image = values.is_image(result) or _lies_channels_last(fuser, node)
    order = channels_last(tensor_type.rank) if image else range(tensor_type.rank)
    place = fuser.storage.workspace(tensor_type, order, values.device_of(result), halo)
    start: Dim = 0
    for operand in node.operands:
        starts = tuple(start if position == axis else 0 for position in range(tensor_type.rank))
        part = Stored(place.buffer, slice_view(place.view, starts, (1,) * tensor_type.rank))
        _store_part(fuser, operand, part, axis)
        start = start + values.type_of(operand).shape[axis]
    fuser.storage.put(result, place)
    if halo is not None:
        fuser.fill_halo(result, place, halo)
        fuser.storage.put_image(result, place)


def _store_part(fuser: Fuser, operand: int, part: Stored, axis: int) -> None:
    """Compute or copy an operand of a concat into its part; of what a reshape left to it, what that
    reads."""
    made = None if fuser.values.is_constant(operand) else fuser.values.maker(operand)
    is_left = fuser.storage.find(operand) is None and fuser.deferred(operand) is None
    if made is not None and made.op == "reshape" and is_left:
        assert _joined_axis(fuser, made) == axis
        fuser.store(made.operands[0], _without_axis(part, axis))
    else:
        fuser.store(operand, part)


def _joined_axis(fuser: Fuser, node: Node) -> int | None:
    """The axis of one element that a reshape adds for the only concat that reads it, along that
    axis."""
    (operand,), (result,) = node.operands, node.results
    users = fuser.values.users(result)
    if [user.op for user in users] != ["concat"] or not _is_read_once(fuser, operand, result):
        return None
    axis, wanted = users[0].integer("axis"), fuser.values.type_of(result).shape
    rest = (*wanted[:axis], *wanted[axis + 1 :])
    is_added = wanted[axis] == 1 and rest == fuser.values.type_of(operand).shape
    return axis if is_added else None


def _is_read_once(fuser: Fuser, *values: int) -> bool:
    return all(fuser.values.use_count(value) == 1 for value in values)


def _without_axis(place: Stored, axis: int) -> Stored:
    """Where the elements of an axis of one element lie."""
    strides = place.view.strides
    return replace(place, view=replace(place.view, strides=(*strides[:axis], *strides[axis + 1 :])))


def _lies_channels_last(fuser: Fuser, node: Node) -> bool:
    """Whether the first operand is an image whose channels lie together, or will be."""
    first = node.operands[0]
    if fuser.values.type_of(first).rank < IMAGE_RANK_MIN:
        return False
    tree = fuser.deferred(first)
    if tree is not None and tree.anchored:
        return tree.kind.result_layout is ResultLayout.CHANNELS_LAST
    stored = fuser.storage.find(first)
    return stored is not None and stored.view.strides[1] == 1 and stored.view.strides[-1] != 1


def read_dim(fuser: Fuser, node: Node) -> None:
    """Bind a symbol to an element of an integer tensor."""
    operand = node.operands[0]
    name, index = node.text("symbol"), node.integer("index")
    fuser.symbols.bind((name,))
    counter = fuser.symbols.counter_of(operand)
    if counter is not None:
        fuser.append(SymbolSet((name,), (counter,)))
        return
    stored, dtype = dense(fuser, operand), fuser.values.type_of(operand).dtype
    place, most = stored.view.offset + index, _most(fuser, operand)
    fuser.append(SymbolRead(name, stored.buffer, place, dtype, source=node.source, most=most))


def _most(fuser: Fuser, value: int) -> int | None:
    """How many elements a mask has, of which ``value`` counts those that are true; else None."""
    values = fuser.values
    total = values.maker(value)
    if total is None or total.op != "reduce" or total.text("function") != "sum":
        return None
    counted = values.maker(total.operands[0])
    if counted is None or counted.op != "cast":
        return None
    mask = values.type_of(counted.operands[0])
    return upper_bound(mask.element_count) if mask.dtype == "bool" else None


def require_dim(fuser: Fuser, node: Node) -> None:
    """Nothing to move: the check is the op's shape constraint."""
    del fuser, node


def copy(fuser: Fuser, node: Node) -> None:
    """Lower a copy: the result has the layout of its operand, on another device."""
    transfer(fuser, node.operands[0], node.results[0], node.source)


MOVEMENT: dict[str, MovementRule] = {
    "broadcast_to": broadcast_to,
    "concat": concat,
    "copy": copy,
    "read_dim": read_dim,
    "require_dim": require_dim,
    "reshape": reshape,
    "slice": slice_,
    "transpose": transpose,
}
