"""Sizes that must hold for a kernel to stay inside its buffers, and that the types leave open: checked when ``main`` begins.

In: a node, the fuser. Out: ``Requirement`` steps, none where the types show it. Not done here: what an op takes for granted (the
claims of its type rule), values of indices (kernels clamp them).
"""

from __future__ import annotations

from ingot_compiler.ir.claims import requirements
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.lowering.fusion.fuser import Fuser


def require_bounds(fuser: Fuser, node: Node) -> None:
    """Check at run time what the op of a node takes for granted."""
    try:
        claims = OPS_BY_NAME[node.op].infer([fuser.types[operand] for operand in node.operands], node.table).claims
    except OpTypeError as error:
        # The sizes that a graph was specialised for contradict its claims: a call with these sizes is refused.
        fuser.require(1, error.text, node)
        return
    for claim in claims:
        for excess, what in requirements(claim):
            fuser.require(excess, what, node)
