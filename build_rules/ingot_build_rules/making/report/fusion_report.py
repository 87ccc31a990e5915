"""The report of fusion for ``inspect --fusion``: bytes that never reach memory, why each kernel
ends, patterns that did not match.

In: the stages of one compilation. Out: plain values for the debug section. Not done here: the
decisions (they come as records with the stages), printing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.refusal import Refusal
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constants.constant_expression import constant_values
from ingot_compiler.lowering.fusion.control import CONTROL_RULES
from ingot_compiler.lowering.fusion.movement import MOVEMENT
from ingot_compiler.lowering.groups.fused import FusedGraph, Group, Launch, all_steps
from ingot_compiler.lowering.groups.versions import versions_of
from ingot_compiler.lowering.ops import has_element_rule
from ingot_compiler.memory.memory_plan import MemoryPlan
from ingot_runtime.lazy_dataclass import dataclass

_USERS_MAX = 3
_UNFINISHED = "another launch of the same operations goes on"
_FREE = frozenset(
    (*MOVEMENT, "constant", "literal", "iota", "dim_values")
)  # make no tensor of their own in memory


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version of the model: the graph before any pass, and the one that was fused; of fixed
    sizes for ``--shape``."""

    imported: Graph
    placed: Graph


def describe_fusion(
    fused: FusedGraph, versions: Sequence[ModelVersion], names: Names
) -> list[dict[str, object]]:
    """Return for each launch ``saved_bytes``, ``ends`` and ``users``; ``versions``: the general
    one, then the specialisations.

    ``saved_bytes``: tensors that would be stored if every operation of the model were a kernel,
    less what is stored; open dimensions count as 64. ``users``: names of nodes that read the
    result, three at most.
    """
    result: list[dict[str, object]] = []
    for version, part in zip(versions, versions_of(fused), strict=True):
        launches = [step for step in all_steps(part.steps) if isinstance(step, Launch)]
        groups = list({id(launch.group): launch.group for launch in launches}.values())
        stop_reasons = _stop_reasons(groups, version.placed, names)
        described: dict[int, dict[str, object]] = {
            id(group): {"saved_bytes": size, "ends": reason, "users": users}
            for group, size, (reason, users) in zip(
                groups, _saved_bytes(groups, version.imported), stop_reasons, strict=True
            )
        }
        unfinished: dict[str, object] = {"saved_bytes": 0, "ends": _UNFINISHED, "users": []}
        result += [
            described[id(launch.group)] if launch.results else unfinished for launch in launches
        ]
    return result


def describe_refusals(refusals: Sequence[Refusal], names: Names) -> list[object]:
    """Return the patterns that were nearly there, with the user's names."""
    return [
        {
            "pattern": item.pattern,
            "nodes": [list(names.nodes[ordinal]) for ordinal in item.source],
            "reason": item.reason,
            "others": [list(names.nodes[ordinal]) for ordinal in item.others[:_USERS_MAX]],
        }
        for item in refusals
    ]


def describe_memory(plan: MemoryPlan) -> dict[str, object]:
    """Return the workspaces of all devices and the bytes that no plan can do without, both for
    typical sizes where some are open."""
    return {
        "planned_bytes": sum(pool.size_bytes for pool in plan.pools),
        "lower_bound_bytes": sum(pool.lower_bound_bytes for pool in plan.pools),
        "fixed": all(pool.is_fixed for pool in plan.pools),
    }


def _saved_bytes(groups: Sequence[Group], imported: Graph) -> Iterator[int]:
    """An imported node in one kernel alone counts whole there; nodes that were split count what a
    kernel keeps inside."""
    sizes = _stored_bytes(imported)
    owners: dict[int, int] = {}
    for group in filter(_computes, groups):
        for ordinal in group.source:
            owners[ordinal] = owners.get(ordinal, 0) + 1
    for group in groups:
        written = sum(_typical_size(result.type.size_bytes) for result in group.results)
        if not _computes(group):
            yield 0
        elif all(owners[ordinal] == 1 for ordinal in group.source):
            yield max(0, sum(sizes.get(ordinal, 0) for ordinal in group.source) - written)
        else:
            yield _inner_bytes(group)


def _typical_size(size_bytes: Dim) -> int:
    """A plausible size; one of windows that 64 elements do not fill is 0."""
    return max(0, typical(size_bytes))


def _typical_bytes(tensor_type: TensorType) -> int:
    return _typical_size(tensor_type.size_bytes)


def _computes(group: Group) -> bool:
    return bool(group.nodes) and not group.fills_halo


def _stored_bytes(imported: Graph) -> dict[int, int]:
    """Ordinal of an imported node -> bytes that its operations make at run time."""
    constant, sizes = constant_values(imported), dict[int, int]()
    typical_bytes = cache(_typical_bytes)  # a graph has many values of few types
    for node in imported.nodes:
        if node.op not in _FREE and len(node.source) == 1:
            kinds = [imported.types[result] for result in node.results if result not in constant]
            sizes[node.source[0]] = sizes.get(node.source[0], 0) + sum(map(typical_bytes, kinds))
    return sizes


def _inner_bytes(group: Group) -> int:
    types, written = dict(group.types), {result.value for result in group.results}
    return sum(
        _typical_size(types[result].size_bytes)
        for node in group.nodes
        if node.op not in _FREE
        for result in node.results
        if result not in written
    )


def _stop_reasons(
    groups: Sequence[Group], graph: Graph, names: Names
) -> Iterator[tuple[str, list[str]]]:
    """Why the kernel ends where it does, and who reads what it stores."""
    users = graph.users()
    returned = frozenset(graph.outputs)
    for group in groups:
        value = group.results[0].value
        readers = users.get(value, [])
        # A recognised pattern stands for several nodes; the last is the one that has its result.
        last = dict.fromkeys(
            graph.nodes[reader].source[-1] for reader in readers if graph.nodes[reader].source
        )
        called = [names.nodes[ordinal][0] for ordinal in list(last)[:_USERS_MAX]]
        if not _computes(group):
            yield ("zeroes a border" if group.nodes else "copies into another layout"), called
        elif value in returned and not readers:
            yield "the model returns it", []
        else:
            yield group.stop_reason or _reason(graph, readers), called


def _reason(graph: Graph, readers: Sequence[int]) -> str:
    """The reason where no user was offered the kernel: they read memory by their nature."""
    ops: set[OpName] = {graph.nodes[reader].op for reader in readers}
    if "copy" in ops:
        return "its user runs on another device"
    if ops & MOVEMENT.keys():
        return "its user is a view of memory"
    if all(op in CONTROL_RULES or has_element_rule(op) for op in ops):
        return "its user looks elements up in memory"
    return "its user reads its operands from memory"  # by loops of its own


def with_fusion(launches: Sequence[object], fusion: Sequence[Mapping[str, object]]) -> list[object]:
    """Join what launches run with what fusion did."""
    joined: list[object] = []
    for launch, more in zip(launches, fusion, strict=True):
        joined.append({**cast("dict[str, object]", launch), **more})
    return joined
