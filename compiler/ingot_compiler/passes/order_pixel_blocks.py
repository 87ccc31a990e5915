"""Pass: the channels of a convolution that become blocks of pixels are ordered pixel by pixel.

In: a graph. Out: a graph where what such a convolution gives for one pixel of a block are channels
that follow one another; its weights are reordered instead. Not done here: how they are stored where
they go (``lowering/fusion/pixel_blocks``).

Superresolution ends with such blocks (ONNX DepthToSpace in mode CRD, PixelShuffle): c * r * r + i * r
+ j is the channel of pixel (i, j), so that neighbours in memory would go to as many places.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.passes.rewrite import Interior, Rewriter, in_shape, rewrite
from ingot_runtime.lazy_dataclass import dataclass


def order_pixel_blocks(graph: Graph) -> Graph:
    """Reorder the weights of every such convolution."""
    return rewrite(graph, _rule, ("transpose",))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """``channels`` of a result, each of which has ``block`` (rows, columns..) places in ``sizes``
    blocks."""

    batch: Dim
    channels: int
    block: tuple[int, ...]
    sizes: tuple[Dim, ...]

    @property
    def ordered(self) -> tuple[Dim, ...]:
        """The shape whose channels follow one another."""
        return self.batch, *self.block, self.channels, *self.sizes


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    split = state.made_by(node.operands[0], "reshape")
    blocks = _blocks(state, split, node) if split else None
    conv = _convolution(state, split) if split and blocks else None
    if split is None or blocks is None or conv is None:
        return None
    region = state.interior(node, conv.operands)
    if region is None or not _is_alike(state, region, conv, split, node):
        return None
    value = _reordered(state, conv, blocks)
    moved = {conv.results[0]: value}
    for item in region.nodes:
        if item not in (conv, split, node):
            operands = [moved.get(operand, operand) for operand in item.operands]
            moved[item.results[0]] = state.emit(item.op, operands, item.table, item.source)
    value = in_shape(state, moved[split.operands[0]], blocks.ordered, split.source)
    count = len(blocks.block)
    pairs = [part for axis in range(count) for part in (2 + count + axis, 1 + axis)]
    order = {"permutation": (0, 1 + count, *pairs)}
    return (state.emit("transpose", (value,), order, node.source),)


def _blocks(state: Rewriter, split: Node, node: Node) -> _Blocks | None:
    """What becomes of channels that are [N, C, block.., sizes..] between the two nodes."""
    batch, *old = state.shape_of(split.operands[0]) or (0,)
    count, shape = len(old) - 1, state.shape_of(split.results[0])
    pairs = [part for axis in range(count) for part in (2 + count + axis, 2 + axis)]
    if count < 1 or len(shape) != 2 + 2 * count or node.ints("permutation") != (0, 1, *pairs):
        return None
    known = [size for size in shape[1 : 2 + count] if isinstance(size, int)]
    if len(known) != 1 + count or shape != (batch, *known, *old[1:]) or old[0] != prod(known):
        return None
    channels, *block = known
    if channels == 1 or prod(block) == 1:
        return None
    return _Blocks(batch, channels, tuple(block), tuple(old[1:]))


def _convolution(state: Rewriter, split: Node) -> Node | None:
    """The convolution with weights of the build whose results are split, through elementwise ops."""
    node = state.producer(split.operands[0])
    while node and Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits:
        shape = state.shape_of(node.results[0])
        whole = [value for value in node.operands if state.shape_of(value) == shape]
        node = state.producer(whole[-1]) if whole else None
    if node is None or node.op != "conv" or node.integer("groups") != 1:
        return None
    return node if all(map(state.is_constant, node.operands[1:])) else None


def _is_alike(state: Rewriter, region: Interior, conv: Node, split: Node, last: Node) -> bool:
    """Whether all nodes between treat all channels alike."""
    made = {result for node in region.nodes for result in node.results}
    between = [node for node in region.nodes if node not in (conv, split, last)]
    others = [value for node in between for value in node.operands if value not in made]
    return (
        conv in region.nodes
        and all(Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits for node in between)
        and all(state.type_of(value).element_count == 1 for value in others)
    )


def _reordered(state: Rewriter, conv: Node, blocks: _Blocks) -> int:
    """The convolution with its channels in the order of the pixels of a block."""
    pixels = prod(blocks.block)

    def ordered(value: int) -> int:
        shape = state.shape_of(value)
        parts = in_shape(state, value, (blocks.channels, pixels, *shape[1:]), conv.source)
        order = {"permutation": (1, 0, *range(2, 1 + len(shape)))}
        parts = state.emit("transpose", (parts,), order, conv.source)
        return in_shape(state, parts, shape, conv.source)

    x, *parameters = conv.operands
    return state.emit("conv", (x, *map(ordered, parameters)), conv.table, conv.source)
