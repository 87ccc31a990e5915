"""How large a model becomes when calls of its own functions are replaced by their bodies: refused
before that is done.

In: a ``ModelProto``. Out: the bytes of the bodies that take the place of calls, or ``LimitError``,
which names the node. Not done here: the replacement (``import_model``), cycles of functions (onnx
refuses them).

Functions that call others twice, some levels deep, are a small file and an endless model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import FunctionProto, ModelProto, NodeProto

from ingot_compiler.frontend.check_nodes import canonical_domain
from ingot_compiler.frontend.model.sort_nodes import all_nodes, describe_node
from ingot_compiler.ir.errors import LimitError
from ingot_runtime.lazy_dataclass import dataclass

NODE_COUNT_MAX = 1 << 17
SIZE_BYTES_MAX = 1 << 29
DEPTH_MAX = 64  # of calls inside calls, and of graphs inside graphs
Called = tuple[str, str, str]
"""Domain, name, overload."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """What a body becomes: nodes, bytes, calls inside calls."""

    node_count: int = 0
    size_bytes: int = 0
    depth: int = 0


def check_functions(model: ModelProto, max_bytes: int | None) -> int:
    """Bytes of the nodes that take the place of calls; at most ``max_bytes`` of them.

    Raises:
        LimitError: too many nodes, bytes or levels.
    """
    if not model.functions:  # nearly all models
        return 0
    functions = {_function_name(function): function for function in model.functions}
    extents = _extents(functions)
    most = SIZE_BYTES_MAX if max_bytes is None else min(SIZE_BYTES_MAX, max_bytes)
    node_count = size_bytes = 0
    for node in model.graph.node:
        found = _extent([node], extents)
        if not found.depth:
            continue
        node_count += found.node_count
        size_bytes += found.size_bytes
        where = describe_node(node)
        _check(found.depth, DEPTH_MAX, "levels of calls", where)
        _check(node_count, NODE_COUNT_MAX, "nodes", where)
        _check(size_bytes, most, "bytes", where)
    return size_bytes


def _check(found: int, limit: int, unit: str, where: str) -> None:
    if found > limit:
        raise LimitError(
            "the model's own functions are too large when calls are replaced by their bodies",
            where,
            f"expected at most {limit} {unit} in their place, got {found}",
            "export the model with fewer or smaller functions",
        )


def _extents(functions: Mapping[Called, FunctionProto]) -> dict[Called, _Extent]:
    """The extent of each function, callees first; those that are part of a cycle are left out."""
    calls = {name: _callees(function, functions) for name, function in functions.items()}
    users: dict[Called, list[Called]] = {}
    for name, callees in calls.items():
        for callee in callees:
            users.setdefault(callee, []).append(name)
    waiting = {name: len(callees) for name, callees in calls.items()}
    ready = [name for name, count in waiting.items() if not count]
    extents: dict[Called, _Extent] = {}
    while ready:
        name = ready.pop()
        found = _extent(functions[name].node, extents)
        extents[name] = _Extent(found.node_count, found.size_bytes, found.depth + 1)
        for user in users.get(name, ()):
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return extents


def _callees(function: FunctionProto, functions: Mapping[Called, FunctionProto]) -> list[Called]:
    """The functions that it calls, each once."""
    called = dict.fromkeys(map(_called, all_nodes(function.node)))
    return [name for name in called if name in functions]


def _extent(nodes: Iterable[NodeProto], extents: Mapping[Called, _Extent]) -> _Extent:
    """Nodes, where each call of a known function counts as its body."""
    own = [node for node in all_nodes(nodes) if _called(node) not in extents]
    called = [extents[_called(node)] for node in all_nodes(nodes) if _called(node) in extents]
    # The bytes of a node count its regions, too: what is nested is counted once a level.
    return _Extent(
        len(own) + sum(item.node_count for item in called),
        sum(node.ByteSize() for node in own) + sum(item.size_bytes for item in called),
        max((item.depth for item in called), default=0),
    )


def _called(node: NodeProto) -> Called:
    return canonical_domain(node.domain), node.op_type, node.overload


def _function_name(function: FunctionProto) -> Called:
    return canonical_domain(function.domain), function.name, function.overload
