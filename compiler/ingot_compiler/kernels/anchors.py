"""What ops with register tiles require of their operands: layouts, packed weights; together with
them, all ops with loops that processors run.

In: a node and the fuser. Out: a deferred anchor. Not done here: packed weights
(``packed_weights``), the loops (``kinds``), ops whose loops any device runs
(``lowering.fusion.loop_anchors``). One function and one line per op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.message import NodeRef, message
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.kinds.attention import ATTENTION
from ingot_compiler.kernels.kinds.recurrent import RECURRENT
from ingot_compiler.kernels.packing import packing
from ingot_compiler.kernels.packing.packed_weights import (
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
)
from ingot_compiler.kernels.products.algorithm import BYTE_PANELS, ONE_COLUMN, PANELS, TURNED
from ingot_compiler.kernels.products.choose import PRODUCT_KINDS, choose_product
from ingot_compiler.kernels.products.conv import (
    CONV_BF16,
)
from ingot_compiler.kernels.products.conv_few_channels import CONV_FEW_CHANNELS
from ingot_compiler.kernels.products.conv_rows import CONV_ROWS
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.depthwise import DEPTHWISE
from ingot_compiler.kernels.products.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.kernels.products.facts import (
    facts_of,
    operand_of,
    target_of,
    wishes_of,
    with_image,
)
from ingot_compiler.kernels.products.matmul import (
    MATMUL_BF16,
)
from ingot_compiler.kernels.products.winograd import shape_of_tile
from ingot_compiler.kernels.quantized_rows import quantized_rows
from ingot_compiler.kernels.tiles import sum_dtype
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.device_rules import Anchor
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import node_halo
from ingot_compiler.lowering.fusion.loop_anchors import LOOP_ANCHORS
from ingot_compiler.lowering.fusion.relayout import contiguous, dense, image, relaid
from ingot_compiler.lowering.groups.method import Method


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


def _rounded(fuser: Fuser, index: int, value: int) -> int:
    """The value in bf16, made once for all products that round it, and by the kernel that computes
    the value where nobody else reads it."""
    values = fuser.values
    if values.type_of(value).dtype == "bf16":
        return value
    made = values.converted(value, "bf16")
    if made is not None and (fuser.deferred(made) or fuser.storage.find(made)):
        return made
    users = sum(_rounds(fuser, user) for user in values.users(value))
    result = values.add_converted(value, "bf16", users)
    attributes, source = make_attributes({"dtype": "bf16"}), values.node(index).source
    cast = values.add_node(Node("cast", (value,), (result,), attributes, (), source))
    part = fuser.absorb(value, values.type_of(value).shape, anchor_allowed=True)
    if part is None:
        fuser.defer(cast, [], [fuser.leaf(value)])
    else:
        fuser.defer(cast, [part], [])
    return result


def _rounds(fuser: Fuser, node: Node) -> bool:
    """Whether the products of a node are of bf16."""
    if node.op not in ("matmul", "conv"):
        return False
    method = choose_product(facts_of(fuser, node), wishes_of(fuser, node), target_of(fuser, node))
    return method is not None and (method.kind in CONV_BF16 or method.kind in MATMUL_BF16)


def conv(fuser: Fuser, index: int, node: Node) -> None:
    """ONNX Conv: the image mostly channels-last with halo, weights as the method reads them."""
    _require_known_taps(node, fuser.values.type_of(node.operands[1]).shape[2:])
    dtype = sum_dtype(fuser.values.type_of(node.operands[0]).dtype)
    wishes, target = wishes_of(fuser, node), target_of(fuser, node)
    facts = facts_of(fuser, node)
    method = choose_product(facts, wishes, target)
    image_leaf = _image_leaf(fuser, index, node, method)
    biases = [fuser.leaf(_converted(fuser, index, bias, dtype)) for bias in node.operands[2:]]
    if method is None:
        method = choose_product(with_image(facts, fuser, image_leaf), wishes, target)
        assert method, "the image is laid out"
    weights, *others = _conv_weights(fuser, index, node, method, image_leaf)
    leaves = [image_leaf, weights, *biases, *others]
    _defer(fuser, index, node, method, leaves)


def _defer(fuser: Fuser, index: int, node: Node, method: Method, leaves: Sequence[Leaf]) -> None:
    anchor = replace(node, operands=tuple(leaf for leaf, _ in leaves))
    fuser.defer_anchor(index, anchor, PRODUCT_KINDS[method.kind], leaves, method=method)


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


def _image_leaf(fuser: Fuser, index: int, node: Node, method: Method | None) -> Leaf:
    """The image as the kernel reads it; None: as most do."""
    x, halo, kind = node.operands[0], node_halo(node), method.kind if method else ""
    if kind in CONV_BF16:
        x = _rounded(fuser, index, x)
    else:
        x = _converted(fuser, index, x, _factor_of_conv(fuser, x))
    if kind in DEPTHWISE_PLANE or (kind in CONV_ROWS and halo.is_empty):
        return fuser.leaf(x)
    if kind in CONV_ROWS:
        return fuser.leaf_at(x, relaid(fuser, x, range(fuser.values.type_of(x).rank), halo))
    return fuser.leaf_at(x, image(fuser, x, halo))


def _conv_weights(
    fuser: Fuser, index: int, node: Node, method: Method, image_leaf: Leaf
) -> list[Leaf]:
    """The weights as the kernel reads them, and what stands behind the biases."""
    w, kind = node.operands[1], method.kind
    dtype = "bf16" if kind in CONV_BF16 else _factor_of_conv(fuser, w)
    if kind in CONV_FEW_CHANNELS or kind in CONV_ROWS:
        return [conv_rows_weights(fuser, node, dtype)]
    if kind in DEPTHWISE or kind in DEPTHWISE_PLANE:
        return [depthwise_weights(fuser, node, dtype)]
    if method.factor != PANELS:
        w = _converted(fuser, index, w, dtype)
        return [conv_weights_at_run_time(fuser, w, node.integer("groups"))]
    depth = _tap_depth(fuser, node, method, image_leaf)
    if method.parts > 1:
        return conv_part_panels(fuser, node, method.parts, depth)
    panels = [conv_panels(fuser, node, dtype, depth)]
    if method.tile:
        panels.append(transformed_weights(fuser, node, shape_of_tile(method)))
    return panels


def _tap_depth(fuser: Fuser, node: Node, method: Method, image_leaf: Leaf) -> int:
    """Summands of a tap that lie beside each other in the image."""
    x = operand_of(fuser.values, image_leaf)
    _, depth, _ = ConvShape.of(node, x, method.weight_shape).reduction(x)
    assert isinstance(depth, int)
    return depth


def _factor_of_conv(fuser: Fuser, value: int) -> DType:
    """What an operand of a convolution is stored as."""
    dtype = fuser.values.type_of(value).dtype
    return dtype if dtype in BYTES else sum_dtype(dtype)


def matmul(fuser: Fuser, index: int, node: Node) -> None:
    """Numpy matmul: rows contiguous in K; the second factor as the method reads it."""
    values, (a, b) = fuser.values, node.operands
    method = choose_product(facts_of(fuser, node), wishes_of(fuser, node), target_of(fuser, node))
    assert method, "none of matrices asks for a layout"
    if method.kind in MATMUL_BF16:
        a = _rounded(fuser, index, a)
        leaves = [fuser.leaf_at(a, contiguous(fuser, a)), matrix_panels(fuser, node, "bf16")]
        return _defer(fuser, index, node, method, leaves)
    if method.parts > 1:
        leaves = [fuser.leaf_at(a, dense(fuser, a)), *matrix_part_panels(fuser, node, method.parts)]
        return _defer(fuser, index, node, method, leaves)
    a_dtype, dtype = _factor_dtypes([values.type_of(operand).dtype for operand in node.operands])
    a = _converted(fuser, index, a, a_dtype)
    leaves = [fuser.leaf_at(a, contiguous(fuser, a))]
    if method.has_addends:
        leaves += byte_matrix_panels(fuser, node)
    elif method.factor == PANELS:
        leaves.append(matrix_panels(fuser, node, dtype))
    elif method.factor == BYTE_PANELS:
        leaves.append(byte_panels_at_run_time(fuser, b))
    elif method.factor in (TURNED, ONE_COLUMN):
        leaves.append(fuser.leaf(b))
    else:
        b = _converted(fuser, index, b, dtype)
        leaves.append(fuser.leaf_at(b, contiguous(fuser, b)))
    return _defer(fuser, index, node, method, leaves)


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
    _defer(fuser, index, node, _method(fuser, node, 1), leaves)


def grouped_matmul(fuser: Fuser, index: int, node: Node) -> None:
    """Rows as they lie, for they are copied; constant matrices in panels, others with contiguous
    rows."""
    values, (a, groups, b) = fuser.values, node.operands
    dtype, method = sum_dtype(values.type_of(a).dtype), _method(fuser, node, 2)
    a = _converted(fuser, index, a, dtype)
    if method.factor == PANELS:
        b_leaf = group_panels(fuser, node, b, dtype)
    else:
        b = _converted(fuser, index, b, dtype)
        b_leaf = fuser.leaf_at(b, dense(fuser, b))
    _defer(fuser, index, node, method, [fuser.leaf(a), fuser.leaf(groups), b_leaf])


def grouped_matmul_blocks(fuser: Fuser, index: int, node: Node) -> None:
    """Rows as they lie, for they are copied; the matrices are constant and in panels."""
    a, groups = map(fuser.leaf, node.operands[:2])
    leaves = [a, groups, *group_blocks_in_panels(fuser, node)]
    _defer(fuser, index, node, _method(fuser, node, 2), leaves)


def _method(fuser: Fuser, node: Node, weights: int) -> Method:
    facts = facts_of(fuser, node, weights)
    method = choose_product(facts, wishes_of(fuser, node), target_of(fuser, node))
    assert method, "the last one serves always"
    return method


def attention(fuser: Fuser, index: int, node: Node) -> None:
    """q, k, v in f32 with contiguous rows; the mask as it lies."""
    values = [_converted(fuser, index, operand, "f32") for operand in node.operands[:3]]
    leaves: list[Leaf] = [fuser.leaf_at(value, contiguous(fuser, value)) for value in values]
    values = [value for value, _ in leaves]
    masks = list(node.operands[3:])
    if masks and fuser.values.type_of(masks[0]).dtype != "bool":
        masks = [_converted(fuser, index, masks[0], "f32")]
    leaves += [fuser.leaf(mask) for mask in masks]
    fuser.defer_anchor(index, replace(node, operands=(*values, *masks)), ATTENTION, leaves)


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
        workspace += quantized_rows((directions, batch), hidden)
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
