"""Pass: a convolution of single channels that gives several of each is a depthwise one of repeated
channels.

In: a graph. Out: a graph where each channel of x stands as often as it is read, and each group has
one channel in and one out. Not done here: long steps, between which most of what is repeated would
not be read; floats of one channel, a product of which each pixel is read for many results; weights that
only a run knows, element types and many taps of bytes, which the kernel of depthwise convolutions
does not take.

The kernel of depthwise convolutions has channels in its lanes; groups of one channel in and several
out fill a lane for each of those, and took up to seven times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.ir.dims import dim_product
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_STEPS_MAX = 4  # of all dimensions together
_TAPS_MAX = 49  # of bytes: more are a matrix product that is worth its name


def repeat_channels(graph: Graph) -> Graph:
    """Repeat the channels of every such convolution."""
    return rewrite(graph, _rule, ("conv",))


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    groups, (results, depth, *kernel) = node.integer("groups"), state.shape_of(node.operands[1])
    if depth != 1 or not isinstance(results, int) or results == groups:
        return None
    dtype = state.type_of(node.operands[0]).dtype
    if dtype not in (BYTES if groups == 1 else (*FLOATS, *BYTES)):
        return None
    if not state.is_constant(node.operands[1]):
        return None
    if math.prod(node.ints("strides")) > (1 if groups == 1 else _STEPS_MAX):
        return None
    taps = dim_product(tuple(kernel))
    if dtype in BYTES and not (isinstance(taps, int) and taps <= _TAPS_MAX):
        return None
    batch, _, *spatial = state.shape_of(node.operands[0])
    times = results // groups

    def moved(op: OpName, value: int, *channels: int) -> int:
        shape = (batch, *channels, *spatial)
        return state.emit(op, (value,), {"shape": shape}, node.source)

    x = moved("reshape", node.operands[0], groups, 1)
    x = moved("reshape", moved("broadcast_to", x, groups, times), results)
    operands = (x, *node.operands[1:])
    return (state.emit("conv", operands, {**node.table, "groups": results}, node.source),)
