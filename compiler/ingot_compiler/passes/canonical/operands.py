"""Canonical operands of elementwise ops: their order, and needless broadcasts before them.

In: a rewriter and a node. Out: the value that stands for its result, or None. Not done here: what
an op computes (``elementwise``), movement ops.
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.passes.match import scalar
from ingot_compiler.passes.rewrite import Rewriter


def constants_last(state: Rewriter, node: Node) -> int | None:
    """Order the operands of a commutative op: by id, constants after others, literals last."""
    left, right = node.operands
    if _place(state, left) <= _place(state, right):
        return None
    return state.emit(node.op, (right, left), {}, node.source)


def _place(state: Rewriter, value: int) -> tuple[bool, bool, int]:
    return scalar(state, value) is not None, state.is_constant(value), value


def without_broadcasts(state: Rewriter, node: Node) -> int | None:
    """Let an elementwise op broadcast by itself: read the operand beneath ``broadcast_to`` or a
    literal's reshape."""
    for index, operand in enumerate(node.operands):
        beneath = _beneath(state, operand)
        if beneath is None:
            continue
        operands = (*node.operands[:index], beneath, *node.operands[index + 1 :])
        inferred = OPS_BY_NAME[node.op].infer(
            [state.type_of(value) for value in operands], node.table
        )
        if inferred.results == (state.type_of(node.results[0]),):
            return state.emit(node.op, operands, dict(node.attributes), node.source)
    return None


def _beneath(state: Rewriter, operand: int) -> int | None:
    wrapper = state.made_by(operand, "broadcast_to", "reshape")
    if wrapper is None:
        return None
    beneath = wrapper.operands[0]
    rank_zero_literal = state.type_of(beneath).rank == 0 and scalar(state, beneath) is not None
    return beneath if wrapper.op == "broadcast_to" or rank_zero_literal else None
