"""``cumsum``: running sums along one axis (ONNX CumSum-14).

In: a group anchored by ``cumsum``. Out: its loop program: units are the other positions, those that
lie together in lanes. Not done here: a parallel scan.
"""

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_mod, dim_mul, symbol
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.line_lanes import LineLanes
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Compare,
    Constant,
    For,
    Let,
    Load,
    Local,
    LoopProgram,
    Statement,
    Store,
    Value,
)

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

    def unless_first(step: Dim, value: Value) -> Value:
        zero = Constant(0.0 if dtype in FLOATS else 0, dtype)
        return Apply("select", (Compare("equal", step, 0), zero, value), dtype)

    def steps(first: Dim, count: int) -> tuple[Statement, ...]:
        """``count`` elements, of which the first one alone waits for what is stored."""
        before = dim_max(first - 1, 0)
        total = unless_first(first, Load(buffers.number(result), offset(result, before)))
        statements: list[Statement] = []
        for number in range(count):
            step = first + number
            own: Value = Load(
                buffers.number(x), offset(x, dim_max(step - 1, 0) if exclusive else step)
            )
            own = unless_first(step, own) if exclusive else own
            statements.append(Let(f"t{number}", Apply("add", (total, own), dtype)))
            total = Local(f"t{number}", dtype)
            statements.append(Store(buffers.number(result), offset(result, step), total))
        return tuple(statements)

    is_narrow = isinstance(lines.lane_count, int) and lines.lane_count <= _NARROW
    at_once = _TOGETHER if is_narrow else 1
    rounds, rest = dim_floordiv(shape[axis], at_once), dim_mod(shape[axis], at_once)
    last = dim_mul(rounds, at_once) + symbol("i")
    loops = [For("g", rounds, "serial", lines.in_lanes(steps(symbol("g") * at_once, at_once)))]
    if rest != 0:
        loops.append(For("i", rest, "serial", lines.in_lanes(steps(last, 1))))
    grain = grain_for(shape[axis] * 4 * lines.lines_of_unit)
    return finish_program(buffers, tuple(loops), lines.unit_count, grain)


CUMSUM = Kind("cumsum", one_kernel(lower_cumsum), ResultLayout.ROW_MAJOR, takes_followers=False)
