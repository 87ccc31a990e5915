"""Pass: the channels of a convolution that become blocks of pixels are ordered pixel by pixel.

In: a graph. Out: a graph where what such a convolution gives for one pixel of a block are channels
that follow one another; its weights are reordered instead. Not done here: how they are stored where
they go (``lowering/fusion/pixel_blocks``).

Superresolution ends with such blocks (ONNX DepthToSpace in mode CRD, PixelShuffle): pixel (i, j) of
channel c is channel c * r * r + i * r + j, so that neighbours in memory would go to as many places.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.alike_channels import convolution_of, emit_again, treat_alike
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite
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
    conv = convolution_of(state, split.operands[0]) if split and blocks else None
    if split is None or blocks is None or conv is None:
        return None
    region = state.interior(node, conv.operands)
    if region is None or conv not in region.nodes:
        return None
    between = [item for item in region.nodes if item not in (conv, split, node)]
    if not treat_alike(state, between, [conv]):
        return None
    value = emit_again(state, between, conv.results[0], _reordered(state, conv, blocks))
    value = in_shape(state, value, blocks.ordered, split.source)
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
