"""Channels of a convolution that become blocks of pixels: the kernel stores them at their final
places.

In: a reshape of the channels, the fuser. Out: the convolution's kernel, which stores the image that
they become. Not done here: which channels follow one another (``passes/order_pixel_blocks``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import channels_last
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.views import reshape_view, transpose_view
from ingot_compiler.lowering.kinds.kind import ResultLayout

_CHANNELS_MULTIPLE = 16  # a vector of results stays one


def stores_pixel_blocks(fuser: Fuser, node: Node) -> bool:
    """Whether the operand of a reshape was a convolution, stored as the image it becomes."""
    operand, result = node.operands[0], node.results[0]
    tree, values = fuser.deferred(operand), fuser.values
    moved = _moved(values, node)
    if tree is None or not tree.anchored or moved is None or values.use_count(operand) != 1:
        return False
    is_conv = values.node(tree.anchor).op == "conv"
    if not is_conv or tree.kind.result_layout is not ResultLayout.CHANNELS_LAST:
        return False
    transposed, whole = moved.operands[0], moved.results[0]
    tensor_type, halo, device = (
        values.type_of(whole),
        values.halo_of(whole),
        values.device_of(whole),
    )
    place = fuser.storage.workspace(tensor_type, channels_last(tensor_type.rank), device, halo)
    view = reshape_view(place.view, tensor_type.shape, values.type_of(transposed).shape)
    if view is None:
        return False
    if halo is not None:
        fuser.fill_halo(whole, place, halo)
        fuser.storage.put_image(whole, place)
    view = transpose_view(view, _inverse(values.users(result)[0].ints("permutation")))
    fuser.defer(values.add_node(node), [tree], [])
    fuser.compute(result, Stored(place.buffer, view))
    return True


def _moved(values: FusionValues, node: Node) -> Node | None:
    """The reshape that joins [N, C, rows, a row's place in a block, ..], behind a transpose of the
    channels [N, places.., C, rows, ..]."""
    batch, *old = values.type_of(node.operands[0]).shape or (0,)
    sizes, shape = old[1:], values.type_of(node.results[0]).shape
    count = len(sizes)
    transpose = _only_user(values, node, "transpose")
    last = _only_user(values, transpose, "reshape") if transpose else None
    if transpose is None or last is None or not count or len(shape) != 2 + 2 * count:
        return None
    *block, channels = shape[1 : 2 + count]
    pairs = [part for axis in range(count) for part in (2 + count + axis, 1 + axis)]
    joined = (dim_mul(size, times) for size, times in zip(sizes, block, strict=True))
    fits = (
        shape == (batch, *block, channels, *sizes)
        and transpose.ints("permutation") == (0, 1 + count, *pairs)
        and values.type_of(last.results[0]).shape == (batch, channels, *joined)
    )
    is_whole = isinstance(channels, int) and channels % _CHANNELS_MULTIPLE == 0
    return last if fits and is_whole else None


def _only_user(values: FusionValues, node: Node, op: str) -> Node | None:
    (result,) = node.results
    users = values.users(result)
    is_one = len(users) == values.use_count(result) == 1
    return users[0] if is_one and users[0].op == op else None


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(permutation.index(axis) for axis in range(len(permutation)))
