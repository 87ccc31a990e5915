"""Greedy suppression: every candidate, best first, against the boxes kept before it.

In: a group of one ``suppress_overlaps``. Out: its loop program: units are rows; earlier boxes in
lanes.
Not done here: sorting.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group
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

_TOP, _LEFT, _BOTTOM, _RIGHT = range(4)


def _f(function: str, left: Value, right: Value) -> Value:
    return Apply(function, (left, right), "bool" if function in ("less", "logical_and") else "f32")


def lower_suppress_overlaps(group: Group, target: KernelTarget) -> LoopProgram:
    """The kept flags are read back while they are written."""
    del target
    operands = {operand.value: operand for operand in group.operands}
    boxes, candidates, threshold = (operands[value] for value in group.nodes[0].operands)
    result = group.results[0]
    buffers = GroupBuffers(group)
    rows, _, count = boxes.type.shape
    row, i, j = symbol("p"), symbol("i"), symbol("j")

    def side(number: int, box: Dim) -> Value:
        return Load(
            buffers.number(boxes), point(boxes.type.shape, (row, number, box)).offset(boxes.view)
        )

    def area(box: Dim) -> Value:
        height = _f("sub", side(_BOTTOM, box), side(_TOP, box))
        return _f("mul", height, _f("sub", side(_RIGHT, box), side(_LEFT, box)))

    def shared(first: int, last: int) -> Value:
        least = _f("min", side(last, i), side(last, j))
        return _f(
            "max", _f("sub", least, _f("max", side(first, i), side(first, j))), Constant(0.0, "f32")
        )

    number = buffers.number(result)
    intersection: Value = Local("shared", "f32")
    union = _f("sub", _f("add", area(i), area(j)), intersection)
    limit = Load(buffers.number(threshold), threshold.view.offset)
    overlaps = _f("less", limit, _f("div", intersection, union))
    kept = Load(number, point(result.type.shape, (row, j)).offset(result.view))
    meets = _f(
        "logical_and",
        _f("less", Constant(0.0, "f32"), intersection),
        _f("logical_and", overlaps, kept),
    )
    common = Let("shared", _f("mul", shared(_TOP, _BOTTOM), shared(_LEFT, _RIGHT)))
    found = Reduce(
        "found", "max", "j", i, "i32", (common,), Apply("cast", (meets,), "i32"), lanes=True
    )
    # Of no earlier box the greatest flag is the least integer.
    free = Apply("less", (Local("found", "i32"), Constant(1, "i32")), "bool")
    here = point(result.type.shape, (row, i)).offset(result.view)
    candidate = Load(
        buffers.number(candidates), point(candidates.type.shape, (row, i)).offset(candidates.view)
    )
    refused = If(
        Apply("logical_not", (candidate,), "bool"), (Store(number, here, Constant(False, "bool")),)
    )
    body = (If(candidate, (found, Store(number, here, free))), refused)
    return finish_program(
        buffers, (For("i", count, "serial", body),), rows, grain_for(dim_product((count, count)))
    )


SUPPRESS_OVERLAPS = Kind("suppress_overlaps", one_kernel(lower_suppress_overlaps))
