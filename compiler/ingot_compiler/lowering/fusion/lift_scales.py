"""Scales and zero points of quantized tensors as operands of a kernel, in the place of numbers in
its code.

In: a deferred tree. Out: the tree, its literals become leaves. Not done here: the kernel
(``make_group``).

Every quantized tensor of a model has numbers of its own, so layers that are equal otherwise would
have no kernel in common. Read from memory, a number costs nothing beside what it is applied to.

A zero point becomes an integer of 16 bits, whose type says to the kernel that it is whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf
from ingot_compiler.lowering.fusion.storage import Storage
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.ops.quantization import whole_dtype

_QUANTIZED = ("i8", "u8")
_LIMITS = ("max", "min")  # those of an element type, the same for all layers


def lift_scales(values: FusionValues, storage: Storage, value: int, tree: Deferred) -> Deferred:
    """Make leaves of the numbers that are added to something or multiplied with it, where the tree
    reads or writes 8-bit integers; ``value`` is its result."""
    touched = [value, *(leaf for leaf, _ in tree.leaves)]
    if not any(values.type_of(each).dtype in _QUANTIZED for each in touched):
        return tree
    nodes = {index: values.node(index) for index in tree.nodes}
    lifted = {
        node.results[0]: index
        for index, node in nodes.items()
        if _is_lifted(values, node, nodes.values())
    }
    # In the order of their use: equal layers have them in one order, wherever the literals stand.
    used = dict.fromkeys(operand for node in nodes.values() for operand in node.operands)
    numbers = [operand for operand in used if operand in lifted]
    device = values.device_of(value)
    leaves, casts = list(tree.leaves), dict[int, int]()
    for each in numbers:
        dtype = _zero_point_dtype(nodes[lifted[each]], nodes.values())
        if dtype is None:
            leaves.append((each, storage.constant(values.expression(each), device)))
        else:
            leaf, casts[lifted[each]] = _whole(values, storage, nodes[lifted[each]], dtype)
            leaves.append(leaf)
    kept = (casts.get(index, index) for index in tree.nodes)
    numbered = tuple(index for index in kept if index not in lifted.values())
    return replace(tree, nodes=numbered, leaves=tuple(leaves))


def _zero_point_dtype(literal: Node, others: Collection[Node]) -> DType | None:
    """The type of a number that is added to what was rounded; None for any other."""
    rounded = {other.results[0] for other in others if other.op == "round"}
    (number,) = literal.numbers("value")
    is_added = any(
        other.op == "add"
        and literal.results[0] in other.operands
        and not rounded.isdisjoint(other.operands)
        for other in others
    )
    return whole_dtype(number) if is_added and literal.text("dtype") == "f32" else None


def _whole(values: FusionValues, storage: Storage, literal: Node, dtype: DType) -> tuple[Leaf, int]:
    """The number in a type of integers, and the cast that makes the float of it."""
    (number,), (value,) = literal.numbers("value"), literal.results
    stored: dict[str, Attribute] = {"dtype": dtype, "shape": (), "value": (int(number),)}
    whole, device = TensorType(dtype, ()), values.device_of(value)
    node = Node("literal", (), (0,), make_attributes(stored))
    place = storage.constant(Graph((), (node,), (0,), (whole,)), device)
    leaf, attributes = values.add(whole, device), make_attributes({"dtype": "f32"})
    return (leaf, place), values.add_node(Node("cast", (leaf,), (value,), attributes))


def _is_lifted(values: FusionValues, node: Node, others: Iterable[Node]) -> bool:
    """Whether a node is a number that nothing but arithmetic reads."""
    if node.op != "literal" or not values.is_constant(node.results[0]):
        return False
    readers = [other for other in others if node.results[0] in other.operands]
    return bool(readers) and all(map(_applies_number, readers))


def _applies_number(node: Node) -> bool:
    """Whether an op computes with both of its operands alike."""
    is_exact = (Trait.ELEMENTWISE | Trait.EXACT) in OPS_BY_NAME[node.op].traits
    return is_exact and len(node.operands) == 2 and node.op not in _LIMITS
