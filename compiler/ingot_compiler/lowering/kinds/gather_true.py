"""``gather_true``: the positions of a mask's true elements, one after the other.

In: a group of one ``positions_of_true``; workspace for how many were found. Out: its loop program:
one unit. Not done here: counting them before.

Blocks without any are passed over by one look, in lanes.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_min, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import ceil_div, point
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local
from ingot_compiler.lowering.loops.program import (
    Filter,
    For,
    If,
    LetIndex,
    LoopProgram,
    Reduce,
    Store,
)

WORKSPACES = [TensorType("i64", (1,))]
_BLOCK = 64


def lower_gather_true(group: Group, target: KernelTarget) -> LoopProgram:
    """No more than ``count`` are stored, whatever the mask has."""
    del target
    buffers, mask = GroupBuffers(group), group.operands[0]
    positions, found = (buffers.number(result) for result in group.results)
    (length,), (count,) = mask.type.shape, group.results[0].type.shape
    start, j = symbol("b") * _BLOCK, symbol("j")
    place = point((length,), (start + j,)).offset(mask.view)
    flag = Load(buffers.number(mask), place)
    extent = dim_min(_BLOCK, length - start)
    any_flag = Apply("cast", (flag,), "i32")
    some = Reduce("some", "max", "j", extent, "i32", (), any_flag, lanes=True)
    at = LetIndex("at", Apply("max", (Load(found, 0), Constant(0, "i64")), "i64"))
    kept = Store(positions, 0, FromIndex(start + j, "i64"))
    picked = Filter("end", "j", extent, symbol("at"), count, (), flag, (kept,))
    behind = Store(found, 0, FromIndex(symbol("end"), "i64"))
    is_any = Apply("less", (Constant(0, "i32"), Local("some", "i32")), "bool")
    block = (some, If(is_any, (at, picked, behind)))
    loop = For("b", ceil_div(length, _BLOCK), "serial", block)
    return finish_program(buffers, (Store(found, 0, Constant(0, "i64")), loop), 1, 1)


GATHER_TRUE = Kind("gather_true", one_kernel(lower_gather_true))
