"""Greedy suppression: every candidate, best first, against the boxes kept before it.

In: a group of one ``suppress_overlaps``. Out: its loop program: units are rows; earlier boxes in
lanes. Not done here: sorting.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    If,
    Let,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Store,
    Value,
)
from ingot_compiler.lowering.space import point

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


def _meets(one: _Box, other: _Box, limit: Value, kept: Value) -> Value:
    """Whether the other box was kept, and shares more than ``limit`` of the union, of which
    ``_SHARED`` is the area that they share."""
    union = _f("sub", _f("add", one.area(), other.area()), _SHARED)
    overlaps = _f("less", limit, _f("div", _SHARED, union))
    return _f("logical_and", _f("less", _ZERO, _SHARED), _f("logical_and", overlaps, kept))


def lower_suppress_overlaps(group: Group, target: KernelTarget) -> LoopProgram:
    """The kept flags are read back while they are written."""
    del target
    operands = {operand.value: operand for operand in group.operands}
    boxes, candidates, threshold = (operands[value] for value in group.nodes[0].operands)
    buffers, flags = GroupBuffers(group), group.results[0]
    rows, _, count = boxes.type.shape
    row, i, j = symbol("p"), symbol("i"), symbol("j")

    def load(operand: Operand, *index: Dim) -> Load:
        place = point(operand.type.shape, index).offset(operand.view)
        return Load(buffers.number(operand), place)

    def box(index: Dim) -> _Box:
        return _Box(*(load(boxes, row, side, index) for side in range(4)))

    meets = _meets(box(i), box(j), load(threshold), load(flags, row, j))
    common = Let(_SHARED.name, box(i).shared_area(box(j)))
    met = Apply("cast", (meets,), "i32")
    found = Reduce("found", "max", "j", i, "i32", (common,), met, lanes=True)
    # Of no earlier box the greatest flag is the least integer.
    free = Apply("less", (Local("found", "i32"), Constant(1, "i32")), "bool")
    candidate, flag = load(candidates, row, i), load(flags, row, i)
    refused = Store(flag.buffer, flag.index, Constant(False, "bool"))
    body = (
        If(candidate, (found, Store(flag.buffer, flag.index, free))),
        If(Apply("logical_not", (candidate,), "bool"), (refused,)),
    )
    loop = For("i", count, "serial", body)
    return finish_program(buffers, (loop,), rows, grain_for(dim_product((count, count))))


SUPPRESS_OVERLAPS = Kind("suppress_overlaps", one_kernel(lower_suppress_overlaps))
