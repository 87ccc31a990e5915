"""What ops with loops of their own require of their operands where plain loops are enough, so that
any back end may have them.

In: a node and the fuser. Out: a deferred anchor. Not done here: the loops (``kinds``), ops that a
back end has tiles for (its own anchors). One function and one line per op.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_floordiv
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.device_rules import Anchor, AnchorRule
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.hold import place_in_state, write_rows
from ingot_compiler.lowering.fusion.layout import Halo
from ingot_compiler.lowering.fusion.relayout import contiguous, image, relaid
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.views import storage_order
from ingot_compiler.lowering.kinds.argument_reduce import ARGUMENT_REDUCE
from ingot_compiler.lowering.kinds.conv_transpose import CONV_TRANSPOSE
from ingot_compiler.lowering.kinds.cumsum import CUMSUM
from ingot_compiler.lowering.kinds.gather_true import GATHER_TRUE, WORKSPACES
from ingot_compiler.lowering.kinds.group_norm import GROUP_NORM
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.linear_attention import LINEAR_ATTENTION
from ingot_compiler.lowering.kinds.linear_attention import workspace as state_columns
from ingot_compiler.lowering.kinds.pool import POOL
from ingot_compiler.lowering.kinds.pool_planes import has_small_planes
from ingot_compiler.lowering.kinds.pool_short_rows import has_short_rows
from ingot_compiler.lowering.kinds.radix_sort import RADIX_SORT
from ingot_compiler.lowering.kinds.radix_sort import workspaces as sort_workspaces
from ingot_compiler.lowering.kinds.rank_rows import RANK_ROWS
from ingot_compiler.lowering.kinds.rank_rows import workspaces as rank_workspaces
from ingot_compiler.lowering.kinds.rank_sort import RANKED_MAX, RANKED_WHOLE_MAX
from ingot_compiler.lowering.kinds.reduce import REDUCE
from ingot_compiler.lowering.kinds.reduction import LANES_MIN
from ingot_compiler.lowering.kinds.resize import RESIZE
from ingot_compiler.lowering.kinds.rows import ROWS
from ingot_compiler.lowering.kinds.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ingot_compiler.lowering.kinds.select_candidates import (
    OPEN_COUNT_MAX,
    SELECT_CANDIDATES,
    least_length,
)
from ingot_compiler.lowering.kinds.select_candidates import workspaces as selection_workspaces
from ingot_compiler.lowering.kinds.select_least import LISTED_MAX, SELECT_LEAST
from ingot_compiler.lowering.kinds.select_or_sort import SELECT_OR_SORT
from ingot_compiler.lowering.kinds.suppress_overlaps import SUPPRESS_OVERLAPS
from ingot_compiler.lowering.kinds.suppress_overlaps import workspaces as suppression_workspaces
from ingot_compiler.lowering.kinds.walk_trees import WALK_TREES

_PAIRS_MIN = 4  # rows that read one again, so that a copy in another layout costs less
_LONG_ROW = 64  # elements, so that a copy costs less than reading the row where it lies
_ROW_MIN = 12  # elements of a row of a pool's result, to be in lanes
_INSIDE_MIN = 5  # the same, where no window reaches beyond the image
_PADS = ("pads_before", "pads_after")


def packed_at_run_time(fuser: Fuser, w: int, packed: TensorType, stored: Stored) -> Leaf:
    """A dense copy of weights seen through another view."""
    value = fuser.values.add(packed, fuser.values.device_of(w))
    fuser.storage.put(value, stored)
    return value, relaid(fuser, value, range(packed.rank))


def _with_prologue(fuser: Fuser, index: int, node: Node, kind: Kind) -> None:
    """An anchor whose first operand may be an elementwise tree; the others are stored."""
    first = node.operands[0]
    part = fuser.absorb(first, fuser.values.type_of(first).shape, anchor_allowed=False)
    leaves = [fuser.leaf(operand) for operand in node.operands[1:]]
    if part is None:
        leaves.insert(0, fuser.leaf(first))
    fuser.defer_anchor(index, node, kind, leaves, [part] if part else [])


def rows(fuser: Fuser, index: int, node: Node) -> None:
    """Softmax and normalisations; a row is read several times, so it lies together."""
    x = node.operands[0]
    shape, tree = fuser.values.type_of(x).shape, fuser.deferred(x)
    is_last = node.integer("axis") == len(shape) - 1
    has_own_kernel = tree is not None and tree.anchored  # whose operands lie as it wants them
    if is_last and typical(shape[-1]) >= _LONG_ROW and not has_own_kernel:
        for value, stored in tree.leaves if tree else (fuser.leaf(x),):
            alike = fuser.values.type_of(value).shape == shape
            if alike and stored.view.strides[-1] not in (0, 1):
                _bring_together(fuser, x, value)
    _with_prologue(fuser, index, node, ROWS)


def _bring_together(fuser: Fuser, x: int, value: int) -> None:
    """Let what a row is read from, whose elements are far from each other, lie row by row."""
    place = contiguous(fuser, value)
    fuser.storage.put(value, place)  # for others, too, whose results lie like it
    if value != x:
        fuser.read_leaf_at(x, value, place)


def reduce(fuser: Fuser, index: int, node: Node) -> None:
    """Reductions; of what is computed of several operands for all pairs of their rows, those that
    are read again and again lie so that results beside each other are in lanes."""
    (x,), axes = node.operands, set(node.ints("axes"))
    shape, tree = fuser.values.type_of(x).shape, fuser.deferred(x)
    kept = [axis for axis in range(len(shape)) if axis not in axes and shape[axis] != 1]
    for value, stored in tree.leaves if tree and kept and not tree.anchored else ():
        own, view = fuser.values.type_of(value).shape, stored.view
        repeats = len(own) == len(shape) and any(
            own[axis] == 1 and typical(shape[axis]) >= _PAIRS_MIN for axis in kept[:-1]
        )
        lane = kept[-1]
        if repeats and typical(own[lane]) >= LANES_MIN and view.strides[lane] not in (0, 1):
            order = [axis for axis in storage_order(view, own) if axis != lane]
            fuser.read_leaf_at(x, value, relaid(fuser, value, [*order, lane]))
    _with_prologue(fuser, index, node, REDUCE)


def pool(fuser: Fuser, index: int, node: Node) -> None:
    """Windows over an image; over one that lies row by row, if nobody else wants it otherwise."""
    x = node.operands[0]
    none = (0,) * fuser.values.type_of(x).rank
    if _stays_in_rows(fuser, x, node):
        leaf = fuser.leaf(x)
    else:
        leaf = fuser.leaf_at(x, image(fuser, x, Halo(none, none)))
    fuser.defer_anchor(index, replace(node, operands=(leaf[0],)), POOL, [leaf])


def _stays_in_rows(fuser: Fuser, x: int, node: Node) -> bool:
    """Whether the pool of an image may read and write rows: nothing needs one of them
    channels-last, and rows are not much shorter than a vector, shuffled in one, or one of all."""
    stored, width = fuser.storage.find(x), fuser.values.type_of(node.results[0]).shape[-1]
    pools = {user.op for user in fuser.values.users(x)} <= {"average_pool", "max_pool"}
    is_padded = any(pad != 0 for name in _PADS for pad in node.dims(name))
    least = _ROW_MIN if is_padded else _INSIDE_MIN
    tensor_type, target = fuser.values.type_of(x), fuser.targets[fuser.values.device_of(x)]
    shape = fuser.values.type_of(node.results[0]).shape
    is_shuffled = tensor_type.dtype == "f32" and has_short_rows(
        node, tensor_type.shape, shape, target
    )
    longest = tensor_type.shape[-1] if is_shuffled else width
    is_plane = tensor_type.dtype == "f32" and has_small_planes(
        node, tensor_type.shape, shape, target
    )
    is_short = not is_plane and typical(longest) < least and tensor_type.shape[1] != 1
    if stored is None or not pools or is_short:
        return False
    is_image = fuser.values.is_image(node.results[0]) or fuser.storage.find_image(x) is not None
    return stored.view.strides[-1] == 1 and not is_image


def stored_only(kind: Kind) -> AnchorRule:
    """An op whose operands are all stored, whatever their layout."""

    def rule(fuser: Fuser, index: int, node: Node) -> None:
        fuser.defer_anchor(index, node, kind, [fuser.leaf(operand) for operand in node.operands])

    return rule


def cumsum(fuser: Fuser, index: int, node: Node) -> None:
    """Sums along an axis before the last one of a transposed operand would be stored far from each
    other, one at a time: such an operand lies row by row, so that lines run in lanes."""
    (x,) = node.operands
    shape, strides = fuser.values.type_of(x).shape, fuser.where(x).view.strides
    is_last = node.integer("axis") == len(shape) - 1
    are_apart = not is_last and strides[-1] not in (0, 1) and typical(shape[-1]) >= LANES_MIN
    leaf = fuser.leaf_at(x, contiguous(fuser, x)) if are_apart else fuser.leaf(x)
    fuser.defer_anchor(index, node, CUMSUM, [leaf])


def linear_attention(fuser: Fuser, index: int, node: Node) -> None:
    """Operands as they lie; the kernel has two results, and a workspace. A head's state is read
    before it is written, so both may lie in one memory."""
    del index
    values, *_, state = fuser.values, *node.operands
    leaves = [fuser.leaf(operand) for operand in node.operands]
    work = values.add(state_columns(values.type_of(state)), values.device_of(state))
    place_in_state(fuser, node.results[1])
    fuser.compute_results(LINEAR_ATTENTION, node, leaves, [work])


def scatter(kind: Kind) -> AnchorRule:
    """Updates of a copy of the first operand: the kernel runs at once, on the copy."""

    def rule(fuser: Fuser, index: int, node: Node) -> None:
        x = node.operands[0]
        place = relaid(fuser, x, range(fuser.values.type_of(x).rank))
        fuser.defer_anchor(
            index, node, kind, [fuser.leaf(operand) for operand in node.operands[1:]]
        )
        fuser.compute(node.results[0], place)

    return rule


def conv_transpose(fuser: Fuser, index: int, node: Node) -> None:
    """Weights [C, O/G, kernel..] as [G, kernel.., C/G, O/G]."""
    w, groups = node.operands[1], node.integer("groups")
    stored, tensor_type = fuser.where(w), fuser.values.type_of(w)
    own, strides = dim_floordiv(tensor_type.shape[0], groups), stored.view.strides
    view = replace(stored.view, strides=(own * strides[0], *strides[2:], strides[0], strides[1]))
    packed = TensorType(
        tensor_type.dtype, (groups, *tensor_type.shape[2:], own, tensor_type.shape[1])
    )
    weights = packed_at_run_time(fuser, w, packed, Stored(stored.buffer, view))
    x, *others = [fuser.leaf(operand) for operand in (node.operands[0], *node.operands[2:])]
    anchor = replace(node, operands=(node.operands[0], weights[0], *node.operands[2:]))
    fuser.defer_anchor(index, anchor, CONV_TRANSPOSE, [x, weights, *others])


def suppress_overlaps(fuser: Fuser, index: int, node: Node) -> None:
    """The kernel reads what it writes: it has no followers."""
    del index
    leaves = [fuser.leaf(operand) for operand in node.operands]
    scores, kept = (fuser.values.type_of(value) for value in (node.operands[1], node.results[0]))
    needed = suppression_workspaces(scores, kept.shape[-1])
    fuser.compute_results(SUPPRESS_OVERLAPS, node, leaves, _added(fuser, node, needed))


def _added(fuser: Fuser, node: Node, workspaces: list[TensorType]) -> list[int]:
    """Values for a kernel's own workspace."""
    device = fuser.values.device_of(node.results[0])
    return [fuser.values.add(workspace, device) for workspace in workspaces]


def argsort(fuser: Fuser, index: int, node: Node) -> None:
    """Where few results are wanted they are selected; else all keys are sorted."""
    del index
    (operand,), (result,) = node.operands, node.results
    keys = fuser.values.type_of(operand)
    kind, needed = _sorting(keys, fuser.values.type_of(result))
    is_long = typical(keys.shape[-1]) >= _LONG_ROW  # a line of the cache for each of its keys
    place = contiguous(fuser, operand) if is_long else fuser.where(operand)
    leaf = fuser.leaf_at(operand, place)
    fuser.compute_results(kind, node, [leaf], _added(fuser, node, needed))


def _sorting(keys: TensorType, tensor_type: TensorType) -> tuple[Kind, list[TensorType]]:
    """The kind of kernel for an order, and its own workspace."""
    count, length = tensor_type.shape[-1], keys.shape[-1]
    if isinstance(count, int) and count <= LISTED_MAX:
        return SELECT_LEAST, [TensorType(keys.dtype, tensor_type.shape)]
    if isinstance(count, int) and not isinstance(length, int):
        return SELECT_OR_SORT, []
    if isinstance(count, int) and isinstance(length, int) and length >= least_length(count):
        return SELECT_CANDIDATES, selection_workspaces(keys, count)
    if isinstance(length, int) and length <= (RANKED_MAX if count == length else RANKED_WHOLE_MAX):
        return RANK_ROWS, rank_workspaces(keys, count)
    if not isinstance(count, int) and count != length and _may_select(length):
        return SELECT_OR_SORT, []
    return RADIX_SORT, sort_workspaces(keys)


def _may_select(length: Dim) -> bool:
    """Whether rows are long enough for it where only a run knows how many results are wanted."""
    return not isinstance(length, int) or length >= least_length(OPEN_COUNT_MAX)


def positions_of_true(fuser: Fuser, index: int, node: Node) -> None:
    """The kernel counts what it has found in workspace."""
    del index
    leaves = [fuser.leaf(operand) for operand in node.operands]
    fuser.compute_results(GATHER_TRUE, node, leaves, _added(fuser, node, WORKSPACES))


LOOP_ANCHORS: dict[str, Anchor] = {
    "argmax": Anchor(stored_only(ARGUMENT_REDUCE)),
    "argmin": Anchor(stored_only(ARGUMENT_REDUCE)),
    "argsort": Anchor(argsort),
    "average_pool": Anchor(pool, reads_image=True),
    "conv_transpose": Anchor(conv_transpose),
    "cumsum": Anchor(cumsum),
    "group_norm": Anchor(stored_only(GROUP_NORM)),
    "layer_norm": Anchor(rows),
    "linear_attention": Anchor(linear_attention),
    "log_softmax": Anchor(rows),
    "max_pool": Anchor(pool, reads_image=True),
    "positions_of_true": Anchor(positions_of_true),
    "reduce": Anchor(reduce),
    "resize": Anchor(stored_only(RESIZE)),
    "rms_norm": Anchor(rows),
    "scatter_elements": Anchor(scatter(SCATTER_ELEMENTS)),
    "scatter_nd": Anchor(scatter(SCATTER_ND)),
    "softmax": Anchor(rows),
    "suppress_overlaps": Anchor(suppress_overlaps),
    "walk_trees": Anchor(stored_only(WALK_TREES)),
    "write_rows": Anchor(write_rows),
}
