"""What passes ask about ops between a convolution and a rearrangement of its channels: whether all
channels are treated alike.

In: a rewriter, values, nodes. Out: the convolution; answers. Not done here: any rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.passes.rewrite import Rewriter

_CHAIN_MAX = 8  # activations are short; an endless chain would be walked again from each of its ops


def is_elementwise(node: Node) -> bool:
    """Whether an op computes each element from those in its place."""
    return Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits


def behind_elementwise(state: Rewriter, value: int) -> Node | None:
    """What makes a value, or what elementwise ops made it of."""
    node = state.producer(value)
    for _ in range(_CHAIN_MAX):
        if node is None or not is_elementwise(node):
            break
        shape = state.shape_of(node.results[0])
        whole = [value for value in node.operands if state.shape_of(value) == shape]
        node = state.producer(whole[-1]) if whole else None
    return node


def convolution_of(state: Rewriter, value: int) -> Node | None:
    """The convolution of one group, with weights of the build, that elementwise ops make a value
    of."""
    node = behind_elementwise(state, value)
    if node is None or node.op != "conv" or node.integer("groups") != 1:
        return None
    return node if all(map(state.is_constant, node.operands[1:])) else None


def treat_alike(state: Rewriter, nodes: Sequence[Node], others: Sequence[Node]) -> bool:
    """Whether ``nodes`` are elementwise and read single numbers beside each other's results and
    those of ``others``."""
    made = {result for node in (*nodes, *others) for result in node.results}
    beside = [value for node in nodes for value in node.operands if value not in made]
    return all(map(is_elementwise, nodes)) and all(
        state.type_of(value).element_count == 1 for value in beside
    )


def emit_again(state: Rewriter, nodes: Sequence[Node], old: int, new: int) -> int:
    """Emit ``nodes`` again, reading ``new`` in the place of ``old``; return the result of the last
    one."""
    moved = {old: new}
    for node in nodes:
        operands = [moved.get(operand, operand) for operand in node.operands]
        new = moved[node.results[0]] = state.emit(node.op, operands, node.table, node.source)
    return new
