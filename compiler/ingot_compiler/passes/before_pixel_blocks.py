"""Pass: an activation behind blocks of pixels stands before them, behind the convolution.

In: a graph. Out: a graph where elementwise ops that treat all channels alike are applied to the
channels that become blocks of pixels. Not done here: the order of these channels
(``order_pixel_blocks``).

There the kernel of the convolution computes them; behind the blocks they would be a kernel that
reads and writes the larger image.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.passes.alike_channels import (
    behind_elementwise,
    convolution_of,
    emit_again,
    treat_alike,
)
from ingot_compiler.passes.rewrite import Rewriter, rewrite

_CHANNELS_MULTIPLE = 16


def before_pixel_blocks(graph: Graph) -> Graph:
    """Move every such op."""
    return rewrite(graph, _rule, _Elementwise())


class _Elementwise:
    """The ops that may move."""

    def __contains__(self, op: OpName, /) -> bool:
        return Trait.ELEMENTWISE in OPS_BY_NAME[op].traits


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    last = behind_elementwise(state, node.results[0])
    moves = _moves(state, last) if last else None
    if moves is None:
        return None
    (value,) = moves[0].operands
    tensor_type = state.type_of(node.results[0])
    is_float = tensor_type.dtype == state.type_of(value).dtype in FLOATS
    if not is_float or not _fill_vectors(tensor_type) or convolution_of(state, value) is None:
        return None
    region = state.interior(node, (value,))
    if region is None or not all(move in region.nodes for move in moves):
        return None
    applied = [item for item in region.nodes if item not in moves]
    if not treat_alike(state, applied, moves):
        return None
    result = emit_again(state, applied, moves[-1].results[0], value)
    return (emit_again(state, moves, value, result),)


def _fill_vectors(tensor_type: TensorType) -> bool:
    """Whether channels leave no lane of a vector empty: a curve of few channels takes longer there
    than that of all pixels."""
    channels = tensor_type.shape[1] if tensor_type.rank > 1 else 0
    return isinstance(channels, int) and channels > 0 and channels % _CHANNELS_MULTIPLE == 0


def _moves(state: Rewriter, last: Node) -> tuple[Node, Node, Node] | None:
    """The reshape, the transpose and the reshape that make blocks of channels."""
    if last.op != "reshape":
        return None
    transpose = state.made_by(last.operands[0], "transpose")
    split = state.made_by(transpose.operands[0], "reshape") if transpose else None
    return (split, transpose, last) if split and transpose else None
