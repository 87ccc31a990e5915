"""Whether a kernel may take in the tree of an operand, and if not, why: pure functions.

In: a deferred tree and facts of its value. Out: a reason, empty where it may. Not done here: what
happens then (``fuser``).
"""

from __future__ import annotations

from ingot_compiler.lowering.fusion.deferred import Deferred

FUSED_NODES_MAX = 48  # keeps kernels small: code generation is quadratic in the length of a block
_REPEATED_NODES_MAX = 2  # of a tree that a larger result computes again and again


def refusal(tree: Deferred, use_count: int, *, same_shape: bool, anchor_allowed: bool) -> str:
    """Why a kernel may not compute a tree of ``use_count`` users; empty if it may.

    ``same_shape``: whether the kernel runs over the value's own shape; ``anchor_allowed``: whether
    the kernel has no loops of its own.
    """
    if use_count != 1:
        return f"the value has {use_count} users"
    if tree.anchored and not tree.kind.takes_followers:
        return f"{tree.kind.name} stores what it computes"
    if len(tree.nodes) >= FUSED_NODES_MAX and not tree.anchored:
        return f"a kernel has at most {FUSED_NODES_MAX} operations"
    if not same_shape and (tree.anchored or len(tree.nodes) > _REPEATED_NODES_MAX):
        return "its user has another shape and would compute it again"
    return "its user has loops of its own" if tree.anchored and not anchor_allowed else ""
