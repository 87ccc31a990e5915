"""Checks the kernels of a fused graph: what a group computes, reads and writes.

In: a group, or a launch of one; what the steps before it left. Out: problems. Not done here: other
steps (``verify_fused``), loops (``verify_loops``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.problem import Problem
from ingot_compiler.ir.sizes.ranges import less
from ingot_compiler.lowering.groups.fused import BufferSpec, Group, Launch, Operand
from ingot_compiler.lowering.groups.fused_scope import FusedScope

_OWN_DEVICE = "a kernel touches buffers of its own device alone"


def find_group_problems(scope: FusedScope, group: Group) -> Iterator[Problem]:
    """Every problem of a kernel: its kind, its nodes, what it reads and writes."""
    if scope.kinds and not group.plugin and group.kind not in scope.kinds:
        expected = f"one of {' '.join(sorted(scope.kinds))}"
        yield scope.problem(expected, group.kind, "kinds of kernels")
    if not -1 <= group.anchor < len(group.nodes):
        expected = f"-1 to {len(group.nodes) - 1}"
        yield scope.problem(expected, str(group.anchor), "which node decides the loops")
    for value in sorted(_unknown_values(group)):
        expected = "a value that is read or made here"
        yield scope.problem(expected, f"%{value}", "operands of a kernel's nodes")
    yield from scope.sizes(dim for _, tensor_type in group.types for dim in tensor_type.shape)
    for operand in group.operands:
        yield from _operand(scope, operand, group)
        if operand.type.element_count != 0:
            yield from scope.holds_something(operand.buffer, "what a kernel reads")
    for result in group.results:
        yield from _operand(scope, result, group)
        yield from scope.may_be_written(result.buffer, "what a kernel writes")
        scope.written.add(result.buffer)


def _unknown_values(group: Group) -> set[int]:
    """What its nodes name, but nobody reads or makes."""
    # The node that decides the loops may find an operand in the buffer that it changes.
    others = [node for index, node in enumerate(group.nodes) if index != group.anchor]
    named = {value for node in others for value in node.operands}
    made = {result for node in group.nodes for result in node.results}
    return named - made - {operand.value for operand in group.operands}


def _operand(scope: FusedScope, operand: Operand, group: Group) -> Iterator[Problem]:
    """What a kernel reads or writes: type, device, place."""
    tensor_type, own = dict(group.types).get(operand.value), operand.type
    yield from scope.sizes((operand.view.offset, *operand.view.strides))
    if own != tensor_type:
        yield scope.problem(str(tensor_type), str(own), f"type of %{operand.value}")
    spec = scope.spec(operand.buffer)
    if spec is None:
        yield scope.no_buffer(operand.buffer)
        return
    yield from _on_device(scope, operand.buffer, spec, group)
    if spec.dtype != own.dtype:
        expected = f"b{operand.buffer} of {own.dtype}"
        yield scope.problem(expected, spec.dtype, "a buffer has one element type")
    if len(operand.view.strides) != own.rank:
        got = str(len(operand.view.strides))
        yield scope.problem(f"{own.rank} strides", got, f"view of %{operand.value}")
    else:
        yield from _inside(scope, operand, spec)


def _on_device(scope: FusedScope, buffer: int, spec: BufferSpec, group: Group) -> Iterator[Problem]:
    if spec.device != group.device:
        got = f"b{buffer} on device {spec.device}"
        yield scope.problem(f"buffers of device {group.device}", got, _OWN_DEVICE)


def _inside(scope: FusedScope, operand: Operand, spec: BufferSpec) -> Iterator[Problem]:
    """That the first and last element of a view lie in the buffer, where their order can be
    seen."""
    ends = _ends(operand)
    if ends is None:
        return
    low, high = ends
    if (isinstance(low, int) and low < 0) or less(high, spec.element_count) is False:
        expected = f"elements 0 to {dim_add(spec.element_count, -1)} of b{operand.buffer}"
        yield scope.problem(expected, f"{low} to {high}", f"view of %{operand.value}")


def _ends(operand: Operand) -> tuple[Dim, Dim] | None:
    """The places of the first and last element of a view; None without elements, or where sizes
    may be 0."""
    if any(size == 0 for size in operand.type.shape):
        return None
    low = high = operand.view.offset
    for size, stride in zip(operand.type.shape, operand.view.strides, strict=True):
        reach = dim_mul(dim_add(size, -1), stride)
        down = less(reach, 0)
        if down is None and not isinstance(reach, int):
            return None
        low, high = (dim_add(low, reach), high) if down else (low, dim_add(high, reach))
    return low, high


def find_launch_problems(scope: FusedScope, step: Launch) -> Iterator[Problem]:
    """Every problem of a launch of a group that is expanded: buffers of its device, with something
    in those that the group reads."""
    operands = step.group.operands
    reads = {operand.buffer for operand in operands if operand.type.element_count != 0}
    for buffer in step.buffers:
        spec = scope.spec(buffer)
        if spec is None:
            yield scope.no_buffer(buffer)
        elif spec.device != step.group.device:
            yield from _on_device(scope, buffer, spec, step.group)
        elif buffer in reads:
            yield from scope.holds_something(buffer, "what a kernel reads")
    for result in step.results:
        yield from scope.may_be_written(result.buffer, "what a kernel writes")
    scope.written.update(step.buffers)
