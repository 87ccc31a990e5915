"""Greedy suppression: every candidate, best first, against the boxes kept before it.

In: a group of one ``suppress_overlaps``; workspace for the boxes that are kept. Out: its loop
program: units are rows; kept boxes in lanes. Not done here: sorting.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import point
from ingot_runtime.lazy_dataclass import dataclass

_TRUE = Constant(True, "bool")
_ZERO = Constant(0.0, "f32")
_SHARED = Local("shared", "f32")


def _f(function: str, left: Value, right: Value) -> Value:
    return Apply(function, (left, right), "bool" if function in ("less", "logical_and") else "f32")


@dataclass(frozen=True, slots=True)
class _Box:
    """The sides of a box, in the order in which they are stored."""

    top: Value
    left: Value
    bottom: Value
    right: Value

    def area(self) -> Value:
        """Height times width."""
        return _f("mul", _f("sub", self.bottom, self.top), _f("sub", self.right, self.left))

    def shared_area(self, other: _Box) -> Value:
        """The area that lies in both."""
        height = _shared_length(self.top, self.bottom, other.top, other.bottom)
        return _f("mul", height, _shared_length(self.left, self.right, other.left, other.right))


def _shared_length(first: Value, last: Value, other_first: Value, other_last: Value) -> Value:
    """The length that two ranges share."""
    length = _f("sub", _f("min", last, other_last), _f("max", first, other_first))
    return _f("max", length, _ZERO)


def _meets(one: _Box, other: _Box, limit: Value) -> Value:
    """Whether the boxes share more than ``limit`` of the union, of which ``_SHARED`` is the area
    that they share."""
    union = _f("sub", _f("add", one.area(), other.area()), _SHARED)
    overlaps = _f("less", limit, _f("div", _SHARED, union))
    return _f("logical_and", _f("less", _ZERO, _SHARED), overlaps)


def _append(buffer: int, place: Callable[[int], Dim], box: _Box) -> tuple[Statement, ...]:
    sides = (box.top, box.left, box.bottom, box.right)
    return tuple(Store(buffer, place(side), value) for side, value in enumerate(sides))


def lower_suppress_overlaps(group: Group, target: KernelTarget) -> LoopProgram:
    """The kept boxes of a row lie together in workspace: a candidate is compared with them
    alone."""
    del target
    operands = {operand.value: operand for operand in group.operands}
    boxes, candidates, threshold, count_max = (operands[value] for value in group.nodes[0].operands)
    flags, kept, counts = group.results
    buffers = GroupBuffers(group)
    rows, _, count = boxes.type.shape
    row, i, j, length = symbol(INDEX), symbol("i"), symbol("j"), symbol("length")

    def load(operand: Operand, *index: Dim) -> Load:
        place = point(operand.type.shape, index).offset(operand.view)
        return Load(buffers.number(operand), place)

    def box(operand: Operand, index: Dim) -> _Box:
        return _Box(*(load(operand, row, side, index) for side in range(4)))

    own, total = box(boxes, i), load(counts, row)
    common = Let(_SHARED.name, own.shared_area(box(kept, j)))
    met = Apply("cast", (_meets(own, box(kept, j), load(threshold)),), "i32")
    found = Reduce("found", "max", "j", length, "i32", (common,), met, lanes=True)
    # Of no earlier box the greatest flag is the least integer.
    free = Apply("less", (Local("found", "i32"), Constant(1, "i32")), "bool")
    more = Store(total.buffer, total.index, FromIndex(length + 1, "i64"))
    appended = _append(buffers.number(kept), lambda side: load(kept, row, side, length).index, own)
    is_open = Apply("less", (FromIndex(length, "i64"), load(count_max)), "bool")
    is_tried = Apply("logical_and", (load(candidates, row, i), is_open), "bool")
    flag = load(flags, row, i)
    tried = (found, If(free, (Store(flag.buffer, flag.index, _TRUE), *appended, more)))
    body = (
        LetIndex("length", Apply("max", (total, Constant(0, "i64")), "i64")),
        Store(flag.buffer, flag.index, Constant(False, "bool")),
        If(is_tried, tried),
    )
    start = Store(total.buffer, total.index, Constant(0, "i64"))
    loop = For("i", count, "serial", body)
    return finish_program(buffers, (start, loop), rows, grain_for(dim_product((count, count))))


def workspaces(boxes: TensorType) -> list[TensorType]:
    """What the kernel needs beside its result: the kept boxes, and how many they are."""
    return [boxes, TensorType("i64", boxes.shape[:1])]


SUPPRESS_OVERLAPS = Kind("suppress_overlaps", one_kernel(lower_suppress_overlaps))
