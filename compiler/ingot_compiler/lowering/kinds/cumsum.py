"""``cumsum``: running sums along one axis (ONNX CumSum-14).

In: a group anchored by ``cumsum``. Out: its loop program: units are the other positions, those that
lie together in lanes. Not done here: a parallel scan.
"""

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.line_lanes import LineLanes
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Statement, Store

_TOGETHER = 8  # elements of a line from one look at what is stored to the next
_NARROW = 32  # lines that lie together up to which a look takes longer than so many rows at once


def lower_cumsum(group: Group, target: KernelTarget) -> LoopProgram:
    """Element i is the stored element before it plus the operand's."""
    del target
    anchor = group.nodes[group.anchor]
    x, result = group.operands[0], group.results[0]
    axis = anchor.integer("axis")
    exclusive, reverse = anchor.flag("exclusive"), anchor.flag("reverse")
    shape, dtype = x.type.shape, x.type.dtype
    buffers, lines = GroupBuffers(group), LineLanes.of(x, axis)

    def offset(operand: Operand, step: Dim) -> Dim:
        index = shape[axis] - 1 - step if reverse else step
        return lines.place(index).offset(operand.view)

    zero = Constant(0.0 if dtype in FLOATS else 0, dtype)
    first: Value = zero if exclusive else Load(buffers.number(x), offset(x, 0))
    begin = Store(buffers.number(result), offset(result, 0), Apply("add", (zero, first), dtype))

    def steps(step: Dim, count: int) -> tuple[Statement, ...]:
        """``count`` elements, of which the first one alone waits for what is stored."""
        total: Value = Load(buffers.number(result), offset(result, step - 1))
        statements: list[Statement] = []
        for number in range(count):
            own = Load(buffers.number(x), offset(x, step + (number - exclusive)))
            statements.append(Let(f"t{number}", Apply("add", (total, own), dtype)))
            total = Local(f"t{number}", dtype)
            statements.append(Store(buffers.number(result), offset(result, step + number), total))
        return tuple(statements)

    def in_lanes(step: Dim, count: int) -> tuple[Statement, ...]:
        return lines.in_lanes(steps(step, count), "vector_down" if reverse else "vector")

    at_once = _at_once(lines)
    others = dim_max(shape[axis] - 1, 0)
    rounds, rest = dim_floordiv(others, at_once), dim_mod(others, at_once)
    last = dim_mul(rounds, at_once) + symbol("i") + 1
    loops = [
        For("b", dim_min(1, shape[axis]), "serial", lines.in_lanes((begin,))),
        For("g", rounds, "serial", in_lanes(symbol("g") * at_once + 1, at_once)),
    ]
    if rest != 0:
        loops.append(For("i", rest, "serial", in_lanes(last, 1)))
    grain = grain_for(shape[axis] * 4 * lines.lines_of_unit)
    return finish_program(buffers, tuple(loops), lines.unit_count, grain)


def _at_once(lines: LineLanes) -> int:
    """How many elements of a line are summed at once: several where they are few beside each other,
    or where a part of a row is far from the next. Whole rows follow one another as they lie in
    memory, which is read ahead then (4000x500: 0.39 ms instead of 0.75)."""
    is_narrow = isinstance(lines.lane_count, int) and lines.lane_count <= _NARROW
    return _TOGETHER if is_narrow or lines.are_split else 1


CUMSUM = Kind("cumsum", one_kernel(lower_cumsum), ResultLayout.ROW_MAJOR, takes_followers=False)
