"""``argmax`` and ``argmin``: the position of the extreme element along one axis; NaN counts as
extreme.

In: a group anchored by one of them. Out: its loop program: units are kept positions, those that lie
together in lanes, or whose few elements do. Not done here: top-k.
"""

from ingot_compiler.ir.dims import Dim, dim_max, dim_min, symbol
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.line_lanes import LineLanes
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import LoopProgram, Reduce, Store

_LAST = (1 << 63) - 1
_SHORT_MAX = 4  # elements of a line up to which lines are in lanes, whose vectors are shuffled
_OPEN_SHORT_MAX = 8  # the same where only a run knows it, so that they are gathered


def lower_argument_reduce(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel; where only a run knows whether lines are short, one of two."""
    del target
    axis, x = group.nodes[group.anchor].integer("axis"), group.operands[0]
    lines, short = LineLanes.of(x, axis), LineLanes.of_short(x, axis)
    length = x.type.shape[axis]
    if not lines.are_alone or short is None or _is_long(length) == 1:
        return one_launch(_program(group, lines))
    beside = one_launch(_program(group, short))
    if isinstance(length, int):
        return beside
    return choose(_is_long(length), one_launch(_program(group, lines)), beside)


def _is_long(length: Dim) -> Dim:
    """1 for lines that are in lanes themselves, else 0."""
    most = _SHORT_MAX if isinstance(length, int) else _OPEN_SHORT_MAX
    return dim_min(1, dim_max(0, length - most))


def _program(group: Group, lines: LineLanes) -> LoopProgram:
    """The extreme value first, then the first (or last) index that has it."""
    anchor = group.nodes[group.anchor]
    x, result = group.operands[0], group.results[0]
    axis, select_last = anchor.integer("axis"), anchor.flag("select_last")
    shape, dtype = x.type.shape, x.type.dtype
    buffers = GroupBuffers(group)
    here, there = (
        Load(buffers.number(x), lines.place(symbol(variable)).offset(x.view))
        for variable in ("i", "j")
    )
    along = lines.are_alone
    function: ReduceFunction = "max" if anchor.op == "argmax" else "min"
    extreme = Reduce("extreme", function, "i", shape[axis], dtype, (), here, lanes=along)
    found: Value = Apply("equal", (there, Local("extreme", dtype)), "bool")
    if dtype in FLOATS:
        found = Apply("logical_or", (found, Apply("isnan", (there,), "bool")), "bool")
    other = Constant(-1 if select_last else _LAST, "i64")
    index = Apply("select", (found, FromIndex(symbol("j"), "i64"), other), "i64")
    position = Reduce(
        "position", "max" if select_last else "min", "j", shape[axis], "i64", (), index, lanes=along
    )
    where = lines.kept_place(result.type.shape).offset(result.view)
    store = Store(buffers.number(result), where, Local("position", "i64"))
    body = lines.in_lanes((extreme, position, store))
    grain = grain_for(shape[axis] * 2 * lines.lines_of_unit)
    return finish_program(buffers, body, lines.unit_count, grain)


ARGUMENT_REDUCE = Kind(
    "argument_reduce",
    lower_argument_reduce,
    ResultLayout.ROW_MAJOR,
    takes_followers=False,
)
