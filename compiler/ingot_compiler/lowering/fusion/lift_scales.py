"""Scales and zero points of quantised tensors as operands of a kernel, in the place of numbers in
its code.

In: a deferred tree. Out: the tree, its literals become leaves. Not done here: the kernel
(``make_group``).

Every quantised tensor of a model has numbers of its own, so layers that are equal otherwise would
have no kernel in common. Read from memory, a number costs nothing beside what it is applied to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf
from ingot_compiler.lowering.fusion.storage import Storage
from ingot_compiler.lowering.fusion.values import FusionValues

_APPLIED_BY: frozenset[OpName] = frozenset(("add", "div", "mul", "sub"))
_QUANTISED = ("i8", "u8")


def lift_scales(values: FusionValues, storage: Storage, value: int, tree: Deferred) -> Deferred:
    """Make leaves of the numbers that are added to something or multiplied with it, where the tree
    reads or writes 8-bit integers; ``value`` is its result."""
    touched = [value, *(leaf for leaf, _ in tree.leaves)]
    if not any(values.type_of(each).dtype in _QUANTISED for each in touched):
        return tree
    nodes = {index: values.node(index) for index in tree.nodes}
    lifted = [index for index, node in nodes.items() if _is_lifted(values, node, nodes.values())]
    device = values.device_of(value)
    leaves: list[Leaf] = []
    for index in lifted:
        (number,) = nodes[index].results
        leaves.append((number, storage.constant(values.expression(number), device)))
    kept = tuple(index for index in tree.nodes if index not in lifted)
    return replace(tree, nodes=kept, leaves=(*tree.leaves, *leaves))


def _is_lifted(values: FusionValues, node: Node, others: Iterable[Node]) -> bool:
    """Whether a node is a number that nothing but arithmetic reads."""
    if node.op != "literal" or not values.is_constant(node.results[0]):
        return False
    readers = [other for other in others if node.results[0] in other.operands]
    return bool(readers) and all(reader.op in _APPLIED_BY for reader in readers)
