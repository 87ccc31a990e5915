"""The conditions on sizes that are checked before the kernel of a node runs.

In: a node. Out: ``Requirement`` steps. Not done here: which requirements a node has
(``requirements``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.ops import has_element_rule


def require_sizes(fuser: Fuser, node: Node) -> None:
    """Append the checks of a node that are not there yet."""
    fuser.require(fuser.requirements.of_sizes(node))
    if node.op == "broadcast_to" or has_element_rule(node.op):
        fuser.require(fuser.requirements.of_counts(node))
    fuser.require(fuser.requirements.of_shape_constraints(node))
