"""Ops that only move data: most become views of the stored operand.

In: a node and the fuser. Out: a stored value. Not done here: gathers and pads (elements of any kernel).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fused import SymbolRead, SymbolSet
from ingot_compiler.lowering.fusion.fuser import Fuser, Stored, channels_last
from ingot_compiler.lowering.views import broadcast_view, reshape_view, slice_view, transpose_view

MovementRule = Callable[[Fuser, Node], None]


def reshape(fuser: Fuser, node: Node) -> None:
    """A view where the elements lie evenly, else one copy."""
    operand, result = node.operands[0], node.results[0]
    shape, wanted = fuser.types[operand].shape, fuser.types[result].shape
    stored = fuser.where(operand)
    view = reshape_view(stored.view, shape, wanted)
    if view is None:
        stored = fuser.dense(operand)
        view = reshape_view(stored.view, shape, wanted)
    assert view is not None
    fuser.stored[result] = Stored(stored.buffer, view)


def transpose(fuser: Fuser, node: Node) -> None:
    """Permuted strides."""
    stored = fuser.where(node.operands[0])
    view = transpose_view(stored.view, node.ints("permutation"))
    fuser.stored[node.results[0]] = Stored(stored.buffer, view)


def slice_(fuser: Fuser, node: Node) -> None:
    """Shifted offset, scaled strides."""
    stored = fuser.where(node.operands[0])
    view = slice_view(stored.view, node.dims("starts"), node.ints("steps"))
    fuser.stored[node.results[0]] = Stored(stored.buffer, view)


def broadcast_to(fuser: Fuser, node: Node) -> None:
    """Strides of 0."""
    stored = fuser.where(node.operands[0])
    shape, wanted = fuser.types[node.operands[0]].shape, fuser.types[node.results[0]].shape
    fuser.stored[node.results[0]] = Stored(stored.buffer, broadcast_view(stored.view, shape, wanted))


def concat(fuser: Fuser, node: Node) -> None:
    """One buffer; every operand is computed, or copied, into its part."""
    result = node.results[0]
    kind = fuser.types[result]
    axis = node.integer("axis")
    image = result in fuser.image_inputs or _lies_channels_last(fuser, node)
    order = channels_last(kind.rank) if image else tuple(range(kind.rank))
    halo = fuser.halos.get(result)
    place = fuser.workspace(kind, order, fuser.device_of[result], halo)
    start: Dim = 0
    for operand in node.operands:
        starts = tuple(start if position == axis else 0 for position in range(kind.rank))
        part = Stored(place.buffer, slice_view(place.view, starts, (1,) * kind.rank))
        deferred = fuser.deferred.get(operand)
        if deferred is not None and fuser.uses.get(operand) == 1:
            fuser.materialise(operand, part)
        else:
            fuser.copy(operand, part)
        start = start + fuser.types[operand].shape[axis]
    fuser.stored[result] = place
    if halo is not None:
        fuser.fill_halo(result, place, halo)


def _lies_channels_last(fuser: Fuser, node: Node) -> bool:
    """Whether the first operand is an image whose channels lie together."""
    first = node.operands[0]
    if fuser.types[first].rank < 3:
        return False
    deferred = fuser.deferred.get(first)
    if deferred is not None and deferred.anchored:
        return deferred.kind in ("conv", "depthwise", "pool")
    if first not in fuser.stored:
        return False
    strides = fuser.stored[first].view.strides
    return strides[1] == 1 and strides[-1] != 1


def read_dim(fuser: Fuser, node: Node) -> None:
    """Bind a symbol to an element of an integer tensor."""
    operand = node.operands[0]
    name, index = node.text("symbol"), node.integer("index")
    fuser.late_symbols.add(name)
    if operand in fuser.counters:
        fuser.steps.append(SymbolSet((name,), (fuser.counters[operand],)))
        return
    stored = fuser.dense(operand)
    fuser.steps.append(
        SymbolRead(name, stored.buffer, stored.view.offset + index, fuser.types[operand].dtype, source=node.source)
    )


def require_dim(fuser: Fuser, node: Node) -> None:
    """Nothing to move: the check is the op's claim."""
    del fuser, node


def copy(fuser: Fuser, node: Node) -> None:
    """The same layout on another device."""
    fuser.transfer(node.operands[0], node.results[0], node.source)


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
