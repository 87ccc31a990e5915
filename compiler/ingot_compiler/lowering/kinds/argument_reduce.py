"""``argmax`` and ``argmin``: the position of the extreme element along one axis; NaN counts as
extreme.

In: a group anchored by one of them. Out: its loop program: units are kept positions. Not done here:
top-k.
"""

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line, other_axes
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    FromIndex,
    Local,
    LoopProgram,
    Reduce,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space

_LAST = (1 << 63) - 1


def lower_argument_reduce(group: Group, target: KernelTarget) -> LoopProgram:
    """The extreme value first, then the first (or last) index that has it."""
    del target
    anchor = group.nodes[group.anchor]
    x, result = group.operands[0], group.results[0]
    axis, select_last = anchor.integer("axis"), anchor.flag("select_last")
    shape, dtype = x.type.shape, x.type.dtype
    kept = other_axes(shape, axis)
    buffers = GroupBuffers(group)
    here, there = (load_of_line(buffers, x, axis, symbol(variable)) for variable in ("i", "j"))
    function: ReduceFunction = "max" if anchor.op == "argmax" else "min"
    extreme = Reduce("extreme", function, "i", shape[axis], dtype, (), here, lanes=True)
    found: Value = Apply("equal", (there, Local("extreme", dtype)), "bool")
    if dtype in FLOATS:
        found = Apply("logical_or", (found, Apply("isnan", (there,), "bool")), "bool")
    other = Constant(-1 if select_last else _LAST, "i64")
    index = Apply("select", (found, FromIndex(symbol("j"), "i64"), other), "i64")
    position = Reduce(
        "position", "max" if select_last else "min", "j", shape[axis], "i64", (), index, lanes=True
    )
    place = kept if result.type.rank == len(shape) else tuple(range(len(kept)))
    where = Space(result.type.shape, (Run(place, symbol("p")),))
    store = Store(buffers.number(result), where.offset(result.view), Local("position", "i64"))
    units, body = line_count(shape, axis), (extreme, position, store)
    return finish_program(buffers, body, units, grain_for(shape[axis] * 2))


ARGUMENT_REDUCE = Kind(
    "argument_reduce",
    one_kernel(lower_argument_reduce),
    ResultLayout.ROW_MAJOR,
    takes_followers=False,
)
