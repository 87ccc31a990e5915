"""The step that computes a value: a deferred tree, its place and the types of all that it names, as
one group.

In: a tree, where its result goes. Out: ``Group``. Not done here: choosing the place (``layout``),
keeping the step (``fuser``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf
from ingot_compiler.lowering.fusion.layout import Halo
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kinds.fill_halo import FILL_HALO
from ingot_compiler.lowering.kinds.kind import Kind


def _operands(values: FusionValues, leaves: Iterable[Leaf]) -> dict[int, Operand]:
    found: dict[int, Operand] = {}
    for value, stored in leaves:
        found.setdefault(value, Operand(value, values.type_of(value), stored.buffer, stored.view))
    return found


def group_of_tree(
    values: FusionValues, value: int, tree: Deferred, place: Stored, stop_reason: str
) -> Group:
    """The kernel that stores a value; ``stop_reason`` says why it takes in no user of it."""
    nodes = tuple(values.node(index) for index in tree.nodes)
    operands = _operands(values, tree.leaves)
    (result,) = _operands(values, [(value, place)]).values()
    named = {
        *operands,
        value,
        *(item for node in nodes for item in (*node.operands, *node.results)),
    }
    # A literal is shared by all who write it: the ops that use it are the ones to name.
    named_by = [node.source for node in nodes if node.op != "literal"] or [values.source_of(value)]
    return Group(
        tree.method or Method(tree.kind.name),
        nodes,
        tuple(operands.values()),
        (result,),
        tuple((item, values.type_of(item)) for item in sorted(named)),
        tree.nodes.index(tree.anchor) if tree.anchored else -1,
        tuple(sorted({ordinal for ordinals in named_by for ordinal in ordinals})),
        values.device_of(value),
        stop_reason if nodes else "",
    )


def group_of_halo(values: FusionValues, value: int, place: Stored, halo: Halo) -> Group:
    """The kernel that writes what stands around a value."""
    own_op = cast("OpName", FILL_HALO.name)  # of fusion's own: in no graph
    attributes = make_attributes({"before": halo.before, "after": halo.after, "value": halo.value})
    node = Node(own_op, (), (value,), attributes)
    tensor_type = values.type_of(value)
    result = Operand(value, tensor_type, place.buffer, place.view)
    source, device = values.source_of(value), values.device_of(value)
    return Group(
        Method(FILL_HALO.name), (node,), (), (result,), ((value, tensor_type),), 0, source, device
    )


def group_of_composite(
    values: FusionValues,
    composite: Node,
    nodes: Sequence[Node],
    leaves: Sequence[Leaf],
    results: Sequence[tuple[int, Stored]],
) -> Group:
    """The kernel of a plug-in: ``nodes`` say what it computes."""
    operands, stored = _operands(values, leaves), _operands(values, results)
    made = {item for node in nodes for item in node.results}
    return Group(
        Method(composite.text("name")),
        tuple(nodes),
        tuple(operands.values()),
        tuple(stored.values()),
        tuple((item, values.type_of(item)) for item in sorted({*operands, *stored, *made})),
        source=composite.source,
        device=values.device_of(composite.results[0]),
        plugin=composite.text("plugin"),
    )


def group_of_results(
    values: FusionValues,
    kind: Kind,
    node: Node,
    leaves: Sequence[Leaf],
    results: Sequence[tuple[int, Stored]],
) -> Group:
    """The kernel of an op of several results, and of workspace of its own behind them."""
    operands = _operands(values, dict(leaves).items())
    stored = _operands(values, results)
    types = tuple((item, values.type_of(item)) for item in sorted({*operands, *stored}))
    device = values.device_of(node.results[0])
    return Group(
        Method(kind.name),
        (node,),
        tuple(operands.values()),
        tuple(stored.values()),
        types,
        0,
        node.source,
        device,
    )
