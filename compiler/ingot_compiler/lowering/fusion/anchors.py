"""What each op with loops of its own asks of its operands: layouts, packed weights, what may be fused before it.

In: a node and the fuser. Out: a deferred anchor. Not done here: the loops (``kinds``). One function and one line per op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType
from ingot_compiler.lowering.fusion import packing
from ingot_compiler.lowering.fusion.fuser import Deferred, Fuser, Stored
from ingot_compiler.lowering.kinds.contraction import panel_width

Leaf = tuple[int, Stored]
AnchorRule = Callable[[Fuser, int, Node], None]
PLANE_STRIDE_MAX = 2  # pixels further apart share no vectors


def _with(node: Node, operands: tuple[int, ...], **extra: bool | tuple[Dim, ...]) -> Node:
    attributes = make_attributes({**dict(node.attributes), **extra})
    return replace(node, operands=operands, attributes=attributes)


def _compute_dtype(dtype: DType) -> DType:
    """Half precisions are multiplied in f32."""
    return "f64" if dtype == "f64" else "f32"


def _converted(fuser: Fuser, index: int, value: int, dtype: DType) -> int:
    """The value in another element type: a new value with a deferred cast."""
    if fuser.types[value].dtype == dtype:
        return value
    kind = fuser.types[value]
    if fuser.is_constant(value):
        result, stored = fuser.constant(packing.cast_to(fuser.expression(value), dtype), fuser.device_of[value])
        fuser.stored[result] = stored
        return result
    result = fuser.new_value(TensorType(dtype, kind.shape), fuser.device_of[value])
    node = Node("cast", (value,), (result,), make_attributes({"dtype": dtype}), (), fuser.nodes[index].source)
    fuser.nodes.append(node)
    leaf = fuser.leaf(value)
    fuser.deferred[result] = Deferred((len(fuser.nodes) - 1,), (leaf,))
    fuser.uses[result] = 1
    if value in fuser.halos:
        fuser.halos[result] = fuser.halos[value]
    fuser.image_inputs |= {result} if value in fuser.image_inputs else set()
    return result


def conv(fuser: Fuser, index: int, node: Node) -> None:
    """ONNX Conv: input channels-last with halo, weights in panels (or [kernel.., C] for depthwise)."""
    dtype = _compute_dtype(fuser.types[node.operands[0]].dtype)
    x = _converted(fuser, index, node.operands[0], dtype)
    w = node.operands[1]
    groups = node.integer("groups")
    before, after = (node.dims(name) for name in ("pads_before", "pads_after"))
    weight_shape = fuser.types[w].shape
    out_channels = weight_shape[0]
    device = fuser.device_of[node.results[0]]
    depthwise = groups != 1 and out_channels == groups and weight_shape[1] == 1 and fuser.is_constant(w)
    plane = depthwise and _stays_row_major(fuser, node)
    leaves: list[Leaf] = [fuser.leaf(x) if plane else fuser.leaf_at(x, fuser.image(x, before, after))]
    x = leaves[0][0]
    if depthwise:
        packed, stored = fuser.constant(packing.depthwise_weights(packing.cast_to(fuser.expression(w), dtype)), device)
        anchor = _with(node, (x, packed, *node.operands[2:]))
    elif fuser.is_constant(w):
        result = fuser.types[node.results[0]].shape
        rows = dim_product((result[0], *result[2:]))
        width = panel_width(rows, dim_floordiv(out_channels, groups), fuser.targets[device], dtype)
        matrix = packing.conv_matrix(packing.cast_to(fuser.expression(w), dtype), groups)
        packed, stored = fuser.constant(packing.pack_panels(matrix, width), device)
        anchor = _with(node, (x, packed, *node.operands[2:]), packed=True, weight_shape=weight_shape)
    else:
        packed, stored = _weights_at_run_time(fuser, _converted(fuser, index, w, dtype), groups)
        anchor = _with(node, (x, packed, *node.operands[2:]), weight_shape=weight_shape)
    leaves.append((packed, stored))
    leaves += [fuser.leaf(_converted(fuser, index, bias, dtype)) for bias in node.operands[2:]]
    anchor = replace(anchor, operands=(*anchor.operands[:2], *(leaf for leaf, _ in leaves[2:])))
    fuser.defer_anchor(index, anchor, "depthwise_plane" if plane else "depthwise" if depthwise else "conv", leaves)


def _stays_row_major(fuser: Fuser, node: Node) -> bool:
    """Whether a depthwise convolution runs on planes: the image is stored row-major, nothing but elementwise ops stands
    between the result and the graph's outputs, all sizes of the plane are known, and every other pixel at most is skipped."""
    x, w = node.operands[:2]
    kind = fuser.types[x]
    if x not in fuser.stored or x in fuser.images or kind.rank not in (3, 4) or kind.dtype not in ("f32", "f64"):
        return False
    strides = node.ints("strides")
    sizes = (*kind.shape[2:], *fuser.types[w].shape[2:], *node.dims("pads_before"))
    known = all(isinstance(size, int) for size in (*sizes, *fuser.types[node.results[0]].shape[2:]))
    dense = fuser.stored[x].view.strides[-1] == 1 and kind.shape[1] != 1
    return known and dense and strides[-1] <= PLANE_STRIDE_MAX and _becomes_output(fuser, node.results[0])


def _becomes_output(fuser: Fuser, value: int) -> bool:
    """Whether all that comes of a value are graph outputs, through elementwise ops."""
    users = [user for user in fuser.graph.nodes if value in user.operands]
    elementwise = all(Trait.ELEMENTWISE in OPS_BY_NAME[user.op].traits for user in users)
    return elementwise and all(_becomes_output(fuser, result) for user in users for result in user.results)


def _weights_at_run_time(fuser: Fuser, w: int, groups: int) -> Leaf:
    """[O, C, kernel..] copied to [G, kernel.., C, O/G] in the workspace."""
    stored = fuser.where(w)
    shape = fuser.types[w].shape
    own = dim_floordiv(shape[0], groups)
    kernel = shape[2:]
    strides = stored.view.strides
    view = replace(stored.view, strides=(own * strides[0], *strides[2:], strides[1], strides[0]))
    value = fuser.new_value(TensorType(fuser.types[w].dtype, (groups, *kernel, shape[1], own)), fuser.device_of[w])
    fuser.stored[value] = Stored(stored.buffer, view)
    return value, fuser.relaid(value, range(len(kernel) + 3))


def matmul(fuser: Fuser, index: int, node: Node) -> None:
    """Numpy matmul: rows contiguous in K; a constant matrix in panels, any other B with contiguous rows."""
    result = fuser.types[node.results[0]]
    if result.dtype not in FLOATS:
        leaves = [fuser.leaf(operand) for operand in node.operands]
        fuser.defer_anchor(index, node, "matmul_integer", leaves)
        return
    dtype = _compute_dtype(result.dtype)
    a = _converted(fuser, index, node.operands[0], dtype)
    b = node.operands[1]
    a_leaf = fuser.leaf_at(a, fuser.contiguous(a))
    a = a_leaf[0]
    if fuser.is_constant(b) and fuser.types[b].rank == 2:
        rows = dim_product(fuser.types[a].shape[:-1])
        device = fuser.device_of[node.results[0]]
        width = panel_width(rows, result.shape[-1], fuser.targets[device], dtype)
        packed, stored = fuser.constant(packing.pack_matrix(packing.cast_to(fuser.expression(b), dtype), width), device)
        fuser.defer_anchor(index, _with(node, (a, packed), packed=True), "matmul", [a_leaf, (packed, stored)])
        return
    b = _converted(fuser, index, b, dtype)
    b_leaf = fuser.leaf_at(b, fuser.contiguous(b))
    fuser.defer_anchor(index, _with(node, (a, b_leaf[0])), "matmul", [a_leaf, b_leaf])


def attention(fuser: Fuser, index: int, node: Node) -> None:
    """q, k, v in f32 with contiguous rows; the mask as it lies."""
    values = [_converted(fuser, index, operand, "f32") for operand in node.operands[:3]]
    leaves: list[Leaf] = [fuser.leaf_at(value, fuser.contiguous(value)) for value in values]
    values = [value for value, _ in leaves]
    masks = list(node.operands[3:])
    if masks and fuser.types[masks[0]].dtype != "bool":
        masks = [_converted(fuser, index, masks[0], "f32")]
    leaves += [fuser.leaf(mask) for mask in masks]
    fuser.defer_anchor(index, _with(node, (*values, *masks)), "attention", leaves)


def _with_prologue(fuser: Fuser, index: int, node: Node, kind: str) -> None:
    """An anchor whose first operand may be an elementwise tree; the others are stored."""
    first = node.operands[0]
    part = fuser.absorb(first, fuser.types[first].shape, anchor_allowed=False)
    leaves = [fuser.leaf(operand) for operand in node.operands[1:]]
    if part is None:
        leaves.insert(0, fuser.leaf(first))
    fuser.defer_anchor(index, node, kind, leaves, [part] if part else [])


def rows(fuser: Fuser, index: int, node: Node) -> None:
    """Softmax and normalisations."""
    _with_prologue(fuser, index, node, "rows")


def reduce(fuser: Fuser, index: int, node: Node) -> None:
    """Reductions."""
    _with_prologue(fuser, index, node, "reduce")


def pool(fuser: Fuser, index: int, node: Node) -> None:
    """Windows over an image."""
    x = node.operands[0]
    none = (0,) * (fuser.types[x].rank - 2)
    leaf = fuser.leaf_at(x, fuser.image(x, none, none))
    fuser.defer_anchor(index, replace(node, operands=(leaf[0],)), "pool", [leaf])


def stored_only(kind: str) -> AnchorRule:
    """An op whose operands are all stored, whatever their layout."""

    def rule(fuser: Fuser, index: int, node: Node) -> None:
        fuser.defer_anchor(index, node, kind, [fuser.leaf(operand) for operand in node.operands])

    return rule


def scatter(kind: str) -> AnchorRule:
    """Updates of a copy of the first operand: the kernel runs at once, on the copy."""

    def rule(fuser: Fuser, index: int, node: Node) -> None:
        place = fuser.relaid(node.operands[0], range(fuser.types[node.operands[0]].rank))
        fuser.defer_anchor(index, node, kind, [fuser.leaf(operand) for operand in node.operands[1:]])
        fuser.materialise(node.results[0], place)

    return rule


def conv_transpose(fuser: Fuser, index: int, node: Node) -> None:
    """Weights [C, O/G, kernel..] as [G, kernel.., C/G, O/G]."""
    w = node.operands[1]
    groups = node.integer("groups")
    stored = fuser.where(w)
    shape, strides = fuser.types[w].shape, stored.view.strides
    own = dim_floordiv(shape[0], groups)
    view = replace(stored.view, strides=(own * strides[0], *strides[2:], strides[0], strides[1]))
    value = fuser.new_value(TensorType(fuser.types[w].dtype, (groups, *shape[2:], own, shape[1])), fuser.device_of[w])
    fuser.stored[value] = Stored(stored.buffer, view)
    packed = value, fuser.relaid(value, range(len(shape) + 1))
    others = [fuser.leaf(operand) for operand in (node.operands[0], *node.operands[2:])]
    anchor = replace(node, operands=(node.operands[0], value, *node.operands[2:]))
    fuser.defer_anchor(index, anchor, "conv_transpose", [others[0], packed, *others[1:]])


def recurrent(fuser: Fuser, index: int, node: Node) -> None:
    """Weights in panels where they are constant; the kernel runs at once and has all results, and gates of its own."""
    del index
    names = operand_names(dict(node.attributes))
    leaves: list[Leaf] = []
    for name, operand in zip(names, node.operands, strict=True):
        if name not in ("weights", "candidate"):
            leaves.append((operand, fuser.contiguous(operand)))
        elif fuser.is_constant(operand):
            leaves.append(_recurrent_panels(fuser, node, operand))
        else:
            leaves.append((operand, fuser.contiguous(operand)))
    y = fuser.types[node.results[0]]
    directions, batch, hidden = y.shape[1:]
    gates = CELLS[node.text("cell")][0]
    device = fuser.device_of[node.results[0]]
    extra = [fuser.new_value(TensorType(y.dtype, (directions, batch, gates * hidden)), device)]
    if "candidate" in names:
        extra.append(fuser.new_value(TensorType(y.dtype, (directions, batch, hidden)), device))
    fuser.emit_at_once("recurrent", replace(node, operands=tuple(leaf for leaf, _ in leaves)), leaves, extra)


def _recurrent_panels(fuser: Fuser, node: Node, weights: int) -> Leaf:
    """[D, H, columns] in panels of the tile that all products of this layer use."""
    y = fuser.types[node.results[0]]
    first = fuser.types[node.operands[1]].shape
    device = fuser.device_of[node.results[0]]
    width = panel_width(y.shape[2], first[2], fuser.targets[device], y.dtype)
    return fuser.constant(packing.pack_panels(fuser.expression(weights), width), device)


def suppress_overlaps(fuser: Fuser, index: int, node: Node) -> None:
    """The kernel reads what it writes: it has no followers."""
    del index
    fuser.emit_at_once("suppress_overlaps", node, [fuser.leaf(operand) for operand in node.operands], [])


ANCHORS: dict[str, AnchorRule] = {
    "argmax": stored_only("argument_reduce"),
    "argmin": stored_only("argument_reduce"),
    "attention": attention,
    "average_pool": pool,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "cumsum": stored_only("cumsum"),
    "group_norm": stored_only("group_norm"),
    "layer_norm": rows,
    "log_softmax": rows,
    "matmul": matmul,
    "max_pool": pool,
    "recurrent": recurrent,
    "reduce": reduce,
    "resize": stored_only("resize"),
    "rms_norm": rows,
    "scatter_elements": scatter("scatter_elements"),
    "scatter_nd": scatter("scatter_nd"),
    "softmax": rows,
    "suppress_overlaps": suppress_overlaps,
}
