"""What ops with register tiles ask of their operands: layouts, packed weights; with them all ops
with loops that processors run.

In: a node and the fuser. Out: a deferred anchor. Not done here: packed weights
(``packed_weights``), the loops (``kinds``), ops whose loops any device runs
(``lowering.fusion.loop_anchors``). One function and one line per op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.backends.host import packing
from ingot_compiler.backends.host.choose_kind import ConvFacts, conv_kind
from ingot_compiler.backends.host.convolution import ConvShape
from ingot_compiler.backends.host.few_channels import has_few_channels
from ingot_compiler.backends.host.kinds.attention import ATTENTION
from ingot_compiler.backends.host.kinds.conv import (
    CONV,
    CONV_BF16,
    CONV_PARTS,
    CONV_STRASSEN,
)
from ingot_compiler.backends.host.kinds.conv_few_channels import CONV_FEW_CHANNELS
from ingot_compiler.backends.host.kinds.conv_rows import CONV_ROWS
from ingot_compiler.backends.host.kinds.depthwise import DEPTHWISE
from ingot_compiler.backends.host.kinds.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.backends.host.kinds.grouped_matmul import GROUPED_MATMUL
from ingot_compiler.backends.host.kinds.grouped_matmul_blocks import GROUPED_MATMUL_BLOCKS
from ingot_compiler.backends.host.kinds.matmul import (
    MATMUL,
    MATMUL_BF16,
    MATMUL_PARTS,
    MATMUL_STRASSEN,
)
from ingot_compiler.backends.host.kinds.matmul_blocks import MATMUL_BLOCKS
from ingot_compiler.backends.host.kinds.recurrent import RECURRENT
from ingot_compiler.backends.host.kinds.winograd import WINOGRAD_KINDS
from ingot_compiler.backends.host.method_of_conv import strassen_tiles_of_conv, winograd_shape
from ingot_compiler.backends.host.method_of_matmul import strassen_tiles
from ingot_compiler.backends.host.packed_weights import (
    blocks_in_panels,
    byte_matrix_panels,
    byte_panels_at_run_time,
    conv_panels,
    conv_part_panels,
    conv_rows_weights,
    conv_weights_at_run_time,
    depthwise_weights,
    group_blocks_in_panels,
    group_panels,
    matrix_panels,
    matrix_part_panels,
    recurrent_panels,
    transformed_weights,
    wants_panels,
)
from ingot_compiler.backends.host.quantised_rows import quantised_rows
from ingot_compiler.backends.host.rounded_factors import rounded, rounds_factors
from ingot_compiler.backends.host.split_products import fits_tiles, lies_alone, part_count
from ingot_compiler.backends.host.tiles import MASKED_LOAD_BITS_MIN, sum_dtype
from ingot_compiler.backends.host.winograd_tiles import WinogradShape
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.message import NodeRef, message
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.ir.window_rules import BYTES
from ingot_compiler.lowering.fused import Operand
from ingot_compiler.lowering.fusion.anchor import Anchor
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import Halo, node_halo
from ingot_compiler.lowering.fusion.loop_anchors import LOOP_ANCHORS
from ingot_compiler.lowering.fusion.relayout import contiguous, dense, image, relaid
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.kinds.kind import Kind


def _with(node: Node, operands: tuple[int, ...], **extra: bool | int | tuple[Dim, ...]) -> Node:
    attributes = make_attributes({**dict(node.attributes), **extra})
    return replace(node, operands=operands, attributes=attributes)


def _converted(fuser: Fuser, index: int, value: int, dtype: DType) -> int:
    """The value in another element type: a new value with a deferred cast."""
    values = fuser.values
    if values.type_of(value).dtype == dtype:
        return value
    if values.is_constant(value):
        expression = packing.cast_to(values.expression(value), dtype)
        result, stored = fuser.constant(expression, values.device_of(value))
        fuser.storage.put(result, stored)
        return result
    result = values.add_converted(value, dtype)
    attributes, source = make_attributes({"dtype": dtype}), values.node(index).source
    cast = Node("cast", (value,), (result,), attributes, (), source)
    fuser.defer_added(cast, [fuser.leaf(value)])
    return result


def conv(fuser: Fuser, index: int, node: Node) -> None:
    """ONNX Conv: input channels-last with halo, weights in panels (or [kernel.., C] for
    depthwise)."""
    _require_known_taps(node, fuser.values.type_of(node.operands[1]).shape[2:])
    dtype = sum_dtype(fuser.values.type_of(node.operands[0]).dtype)
    x, (kind, shape) = _image_factor(fuser, index, node), _kind_and_tiles(fuser, node)
    image_leaf = _image_leaf(fuser, x, kind, node_halo(node))
    biases = [fuser.leaf(_converted(fuser, index, bias, dtype)) for bias in node.operands[2:]]
    may_be_parts = shape is None and kind is not CONV_ROWS
    if may_be_parts and _conv_of_parts(fuser, index, node, image_leaf, biases):
        return
    weights, anchor = _conv_weights(fuser, index, node, kind, image_leaf)
    leaves = [image_leaf, weights, *biases]
    if shape:
        leaves.append(transformed_weights(fuser, node, shape))
        anchor = _with(anchor, anchor.operands, tile=shape.tile)
    image_operand = _operand(fuser, image_leaf) if kind is CONV else None
    tiles = strassen_tiles_of_conv(fuser, anchor, image_operand)
    if tiles is not None:
        kind, anchor = CONV_STRASSEN, _with(anchor, anchor.operands, strassen=tiles.ints)
    operands = tuple(leaf for leaf, _ in leaves)
    fuser.defer_anchor(index, replace(anchor, operands=operands), kind, leaves)


def _require_known_taps(node: Node, taps: Sequence[Dim]) -> None:
    """Refuse weights of a call that come in any size: the kernel's loops over taps are laid out
    when it is compiled."""
    if not all(isinstance(size, int) for size in taps):
        raise UnsupportedError(
            "a convolution whose kernel has any size is not compiled",
            NodeRef(min(node.source, default=0)),
            message("expected fixed sizes behind the channels of its weights, got ", list(taps)),
            "fix them in the model: by the node's attribute kernel_shape, or the input's shape",
        )


def _kind_and_tiles(fuser: Fuser, node: Node) -> tuple[Kind, WinogradShape | None]:
    """The kind of a convolution, and its tiles by Winograd's algorithm (None: another method). Few
    channels are faster along rows, unless the algorithm is asked for."""
    shape = winograd_shape(fuser, node)
    kind = _direct_kind(fuser, node, is_by_tiles=shape is not None)
    is_asked_for = fuser.methods.of(node) or fuser.methods.of_all
    if shape is None or (kind is CONV_ROWS and not is_asked_for):
        return kind, None
    return WINOGRAD_KINDS[shape.tile], shape


def _image_leaf(fuser: Fuser, x: int, kind: Kind, halo: Halo) -> Leaf:
    """The image as the kernel reads it."""
    if kind is DEPTHWISE_PLANE or (kind is CONV_ROWS and halo.is_empty):
        return fuser.leaf(x)
    if kind is CONV_ROWS:
        return fuser.leaf_at(x, relaid(fuser, x, range(fuser.values.type_of(x).rank), halo))
    return fuser.leaf_at(x, image(fuser, x, halo))


def _operand(fuser: Fuser, leaf: Leaf) -> Operand:
    """A leaf as the kernel reads it."""
    value, stored = leaf
    return Operand(value, fuser.values.type_of(value), stored.buffer, stored.view)


def _conv_of_parts(
    fuser: Fuser, index: int, node: Node, image_leaf: Leaf, biases: Sequence[Leaf]
) -> bool:
    """Whether the convolution was deferred as one of parts of its factors."""
    count, w = part_count(fuser, node), node.operands[1]
    if count == 1 or not lies_alone(fuser, node.operands[0], image_leaf[1]):
        return False
    shape = fuser.values.type_of(w).shape
    anchor = _with(node, node.operands, packed=True, weight_shape=shape, parts=count)
    depth = _tap_depth(fuser, anchor, image_leaf)
    if not fits_tiles(fuser, node, depth):
        return False
    greatest, *others = conv_part_panels(fuser, node, count, depth)
    leaves = [image_leaf, greatest, *biases, *others]
    operands = tuple(leaf for leaf, _ in leaves)
    fuser.defer_anchor(index, replace(anchor, operands=operands), CONV_PARTS[count], leaves)
    return True


def _direct_kind(fuser: Fuser, node: Node, *, is_by_tiles: bool) -> Kind:
    if rounds_factors(fuser, node):
        return CONV_BF16
    kind = conv_kind(node, _conv_facts(fuser, node, is_by_tiles=is_by_tiles))
    return CONV_FEW_CHANNELS if kind is CONV and has_few_channels(fuser, node) else kind


def _conv_weights(
    fuser: Fuser, index: int, node: Node, kind: Kind, image_leaf: Leaf
) -> tuple[Leaf, Node]:
    """The weights as the kernel reads them, and the node that says so."""
    w = node.operands[1]
    dtype, shape = _factor_of_conv(fuser, w), fuser.values.type_of(w).shape
    dtype = "bf16" if kind is CONV_BF16 else dtype
    if kind in (CONV_FEW_CHANNELS, CONV_ROWS):
        return conv_rows_weights(fuser, node, dtype), _with(node, node.operands, weight_shape=shape)
    if kind in (DEPTHWISE, DEPTHWISE_PLANE):
        return depthwise_weights(fuser, node, dtype), _with(node, node.operands, weight_shape=shape)
    if fuser.values.is_constant(w):
        anchor = _with(node, node.operands, packed=True, weight_shape=shape)
        return conv_panels(fuser, node, dtype, _tap_depth(fuser, anchor, image_leaf)), anchor
    w = _converted(fuser, index, w, dtype)
    leaf = conv_weights_at_run_time(fuser, w, node.integer("groups"))
    return leaf, _with(node, node.operands, weight_shape=shape)


def _image_factor(fuser: Fuser, index: int, node: Node) -> int:
    """The image in the element type in which it is multiplied."""
    x = node.operands[0]
    if rounds_factors(fuser, node):
        return rounded(fuser, index, x)
    return _converted(fuser, index, x, _factor_of_conv(fuser, x))


def _tap_depth(fuser: Fuser, anchor: Node, image_leaf: Leaf) -> int:
    """Summands of a tap that lie beside each other in the image."""
    x = _operand(fuser, image_leaf)
    _, depth, _ = ConvShape.of(anchor, x, anchor.dims("weight_shape")).reduction(x)
    assert isinstance(depth, int)
    return depth


def _factor_of_conv(fuser: Fuser, value: int) -> DType:
    """What an operand of a convolution is stored as."""
    dtype = fuser.values.type_of(value).dtype
    return dtype if dtype in BYTES else sum_dtype(dtype)


def _conv_facts(fuser: Fuser, node: Node, *, is_by_tiles: bool) -> ConvFacts:
    values, (x, w) = fuser.values, node.operands[:2]
    stored = fuser.storage.find(x) if fuser.storage.find_image(x) is None else None
    target = fuser.targets[values.device_of(x)]
    return ConvFacts(
        values.type_of(x),
        values.type_of(w),
        values.type_of(node.results[0]),
        values.is_constant(w),
        stored.view if stored else None,
        _becomes_output(values, node.results[0]),
        target.vector_bits >= MASKED_LOAD_BITS_MIN,
        target.f32_lanes,
        target.team_units > 1,
        is_by_tiles,
    )


def _becomes_output(values: FusionValues, value: int) -> bool:
    """Whether all that comes of a value are graph outputs, through elementwise ops."""
    seen, waiting = {value}, [value]
    while waiting:
        for user in values.users(waiting.pop()):
            if Trait.ELEMENTWISE not in OPS_BY_NAME[user.op].traits:
                return False
            waiting += [result for result in user.results if result not in seen]
            seen.update(user.results)
    return True


def matmul(fuser: Fuser, index: int, node: Node) -> None:
    """Numpy matmul: rows contiguous in K; a constant matrix in panels, and one of bytes that is
    read often; any other B with contiguous rows."""
    values, (a, b) = fuser.values, node.operands
    if rounds_factors(fuser, node):
        a = rounded(fuser, index, a)
        leaves = [fuser.leaf_at(a, contiguous(fuser, a)), matrix_panels(fuser, node, "bf16")]
        _defer_product(fuser, index, node, MATMUL_BF16, leaves, "packed")
        return
    count = part_count(fuser, node)
    if count > 1 and fits_tiles(fuser, node, values.type_of(b).shape[0]):
        leaves = [fuser.leaf_at(a, dense(fuser, a)), *matrix_part_panels(fuser, node, count)]
        anchor = _with(node, tuple(leaf for leaf, _ in leaves), packed=True, parts=count)
        fuser.defer_anchor(index, anchor, MATMUL_PARTS[count], leaves)
        return
    a_dtype, dtype = _factor_dtypes([values.type_of(operand).dtype for operand in node.operands])
    a = _converted(fuser, index, a, a_dtype)
    a_leaf = fuser.leaf_at(a, contiguous(fuser, a))
    if values.is_constant(b) and values.type_of(b).rank == 2:
        _by_constant(fuser, index, node, a_leaf, dtype)
        return
    if wants_panels(values, node):
        b_leaf, form = byte_panels_at_run_time(fuser, b), "panels"
    else:
        b = _converted(fuser, index, b, dtype)
        b_leaf, form = fuser.leaf_at(b, contiguous(fuser, b)), ""
    _defer_product(fuser, index, node, MATMUL, [a_leaf, b_leaf], form)


def _by_constant(fuser: Fuser, index: int, node: Node, a: Leaf, dtype: DType) -> None:
    """A product with a matrix in panels."""
    weights = byte_matrix_panels(fuser, node) if dtype == "f32" else []
    leaves = [a, *(weights or [matrix_panels(fuser, node, dtype)])]
    shape = strassen_tiles(fuser, node, a[1])
    extra: dict[str, bool | tuple[Dim, ...]] = {} if shape is None else {"strassen": shape.ints}
    if weights:
        extra["addends"] = True
    anchor = _with(node, tuple(leaf for leaf, _ in leaves), packed=True, **extra)
    kind = MATMUL if shape is None else MATMUL_STRASSEN
    fuser.defer_anchor(index, anchor, kind, leaves)


def _defer_product(
    fuser: Fuser, index: int, node: Node, kind: Kind, leaves: Sequence[Leaf], form: str
) -> None:
    """``form``: the attribute that says how B lies; "" where it lies in rows."""
    operands = tuple(leaf for leaf, _ in leaves)
    anchor = _with(node, operands, **({form: True} if form else {}))
    fuser.defer_anchor(index, anchor, kind, leaves)


def _factor_dtypes(dtypes: Sequence[DType]) -> Sequence[DType]:
    """What the operands of a product are stored as: bytes as they are; else two of 8 or 16 bits fit
    i16 but for u16."""
    if all(dtype in BYTES for dtype in dtypes):
        return dtypes
    if all(dtype in ("i8", "u8", "i16") for dtype in dtypes):
        return "i16", "i16"
    return (sum_dtype(dtypes[0]),) * 2


def matmul_blocks(fuser: Fuser, index: int, node: Node) -> None:
    """Rows contiguous in K; everything else is constant and in panels."""
    a = node.operands[0]
    leaves = [fuser.leaf_at(a, contiguous(fuser, a)), *blocks_in_panels(fuser, node)]
    anchor = _with(node, tuple(leaf for leaf, _ in leaves))
    fuser.defer_anchor(index, anchor, MATMUL_BLOCKS, leaves)


def grouped_matmul(fuser: Fuser, index: int, node: Node) -> None:
    """Rows as they lie, for they are copied; constant matrices in panels, others with contiguous
    rows."""
    values, (a, groups, b) = fuser.values, node.operands
    dtype = sum_dtype(values.type_of(a).dtype)
    a = _converted(fuser, index, a, dtype)
    is_packed = values.is_constant(b)
    if is_packed:
        b_leaf = group_panels(fuser, node, b, dtype)
    else:
        b = _converted(fuser, index, b, dtype)
        b_leaf = fuser.leaf_at(b, dense(fuser, b))
    leaves = [fuser.leaf(a), fuser.leaf(groups), b_leaf]
    form = "packed" if is_packed else ""
    _defer_product(fuser, index, node, GROUPED_MATMUL, leaves, form)


def grouped_matmul_blocks(fuser: Fuser, index: int, node: Node) -> None:
    """Rows as they lie, for they are copied; the matrices are constant and in panels."""
    a, groups = map(fuser.leaf, node.operands[:2])
    leaves = [a, groups, *group_blocks_in_panels(fuser, node)]
    anchor = _with(node, tuple(leaf for leaf, _ in leaves))
    fuser.defer_anchor(index, anchor, GROUPED_MATMUL_BLOCKS, leaves)


def attention(fuser: Fuser, index: int, node: Node) -> None:
    """q, k, v in f32 with contiguous rows; the mask as it lies."""
    values = [_converted(fuser, index, operand, "f32") for operand in node.operands[:3]]
    leaves: list[Leaf] = [fuser.leaf_at(value, contiguous(fuser, value)) for value in values]
    values = [value for value, _ in leaves]
    masks = list(node.operands[3:])
    if masks and fuser.values.type_of(masks[0]).dtype != "bool":
        masks = [_converted(fuser, index, masks[0], "f32")]
    leaves += [fuser.leaf(mask) for mask in masks]
    fuser.defer_anchor(index, _with(node, (*values, *masks)), ATTENTION, leaves)


def recurrent(fuser: Fuser, index: int, node: Node) -> None:
    """Weights in panels where they are constant; the kernel runs at once and has all results, and
    gates of its own."""
    del index
    values, names = fuser.values, operand_names(dict(node.attributes))
    leaves: list[Leaf] = []
    for name, operand in zip(names, node.operands, strict=True):
        if name in ("weights", "candidate") and values.is_constant(operand):
            leaves.append(recurrent_panels(fuser, node, operand))
        else:
            leaves.append((operand, contiguous(fuser, operand)))
    y, device = values.type_of(node.results[0]), values.device_of(node.results[0])
    directions, batch, hidden = y.shape[1:]
    gates = CELLS[node.text("cell")][0]
    workspace = [TensorType(y.dtype, (directions, batch, gates * hidden))]
    if "candidate" in names:
        workspace.append(TensorType(y.dtype, (directions, batch, hidden)))
    if "scale" in names:
        workspace += quantised_rows((directions, batch), hidden)
    extra = [values.add(kind, device) for kind in workspace]
    operands = tuple(leaf for leaf, _ in leaves)
    fuser.compute_results(RECURRENT, replace(node, operands=operands), leaves, extra)


ANCHORS: dict[str, Anchor] = {
    **LOOP_ANCHORS,
    "attention": Anchor(attention),
    "conv": Anchor(conv, reads_image=True, reads_halo=True),
    "grouped_matmul": Anchor(grouped_matmul),
    "grouped_matmul_blocks": Anchor(grouped_matmul_blocks),
    "matmul": Anchor(matmul),
    "matmul_blocks": Anchor(matmul_blocks),
    "matmul_integer": Anchor(matmul),
    "recurrent": Anchor(recurrent),
}
