"""What is different in a model, by the names of its tensors and nodes.

In: what an import made of the old file and of the new one. Out: lines. Not done here: loading them
(``explanations``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ingot_build_rules.engine.events.differ import differences
from ingot_build_rules.making.rules.import_model import Imported
from ingot_build_rules.tools.workspace.difference_text import difference_text, short
from ingot_compiler.frontend.model.imported import ImportedModel, ImportedNode
from ingot_compiler.ir.graph import Names


def import_differences(
    was: Imported,
    now: Imported,
    old_names: Names,
    new_names: Names,
    old_model: ImportedModel,
    new_model: ImportedModel,
) -> Iterator[str]:
    """Yield a line for each tensor, node, attribute and name that is not what it was."""
    yield from _tensors(was, now, old_names, new_names)
    yield from _nodes(old_model, new_model, old_names, new_names)
    same_nodes = len(old_model.nodes) == len(new_model.nodes)
    if same_nodes:
        for item in differences(replace(old_model, nodes=()), replace(new_model, nodes=())):
            yield difference_text(item, new_model)
    for item in differences(old_names, new_names):
        if same_nodes or item.path[0] not in ("nodes", "weights"):
            yield f"name {difference_text(item, new_names)}"


def _tensors(was: Imported, now: Imported, old_names: Names, new_names: Names) -> Iterator[str]:
    old = {name: item.digest for name, item in zip(old_names.weights, was.weights, strict=False)}
    new = {name: item.digest for name, item in zip(new_names.weights, now.weights, strict=False)}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after:
            yield f"tensor {name!r} {short(before)} -> {short(after)}"


def _nodes(
    old_model: ImportedModel, new_model: ImportedModel, old_names: Names, new_names: Names
) -> Iterator[str]:
    """Node by node where there are as many as before, else by their names."""
    if len(old_model.nodes) == len(new_model.nodes):
        for index, (was, now) in enumerate(zip(old_model.nodes, new_model.nodes, strict=True)):
            yield from _node(new_names.describe((index,)), was, now)
        return
    old, new = _by_name(old_model, old_names), _by_name(new_model, new_names)
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield f"node {name} is gone"
        elif name not in old:
            yield f"node {name} is new"
        else:
            yield from _node(name, _without_tensors(old[name]), _without_tensors(new[name]))


def _without_tensors(node: ImportedNode) -> ImportedNode:
    """Tensors are known by position, and every position behind the first new node is another
    one."""
    return replace(node, operands=(), results=())


def _by_name(model: ImportedModel, names: Names) -> dict[str, ImportedNode]:
    return {names.describe((index,)): node for index, node in enumerate(model.nodes)}


def _node(name: str, was: ImportedNode, now: ImportedNode) -> Iterator[str]:
    for item in differences(was, now):
        yield f"node {name}, {difference_text(item, now)}"
