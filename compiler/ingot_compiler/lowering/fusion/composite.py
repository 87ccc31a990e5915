"""Makes a composite one group of its plug-in, whose operands and results are row-major without
gaps.

In: a composite and the fuser. Out: its group, appended. Not done here: what runs for it (the
plug-in), who claims what (``plugins``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.relayout import dense
from ingot_compiler.lowering.fusion.require_sizes import require_sizes


def fuse_composite(fuser: Fuser, node: Node) -> None:
    """Store the operands, append the group, and say where its results lie."""
    (body,) = node.regions
    device = fuser.values.device_of(node.results[0])
    ids = dict(zip(body.inputs, node.operands, strict=True))
    ids |= dict(zip(body.outputs, node.results, strict=True))
    for inner in body.nodes:
        for result in inner.results:
            if result not in ids:
                ids[result] = fuser.values.add(body.types[result], device)
    nodes = tuple(_renamed(inner, ids) for inner in body.nodes)
    leaves = [fuser.leaf_at(operand, dense(fuser, operand)) for operand in node.operands]
    seen = {operand: leaf[0] for operand, leaf in zip(node.operands, leaves, strict=True)}
    for inner in nodes:
        require_sizes(fuser, inner)
    read = tuple(_reading(inner, seen) for inner in nodes)
    fuser.compute_composite(node, (*read, _report(node)), leaves)


def _renamed(node: Node, ids: Mapping[int, int]) -> Node:
    operands = tuple(ids[operand] for operand in node.operands)
    return replace(node, operands=operands, results=tuple(ids[result] for result in node.results))


def _reading(node: Node, seen: Mapping[int, int]) -> Node:
    """The node reading a copy of a value where the group reads it row-major."""
    return replace(node, operands=tuple(seen.get(operand, operand) for operand in node.operands))


def _report(node: Node) -> Node:
    """What the call says where the plug-in's code refuses the values that it is given."""
    name, plugin = node.text("name"), node.text("plugin")
    what = f"{name} of plug-in {plugin} refuses these values"
    return Node("require", (), (), make_attributes({"what": what}), (), node.source)
