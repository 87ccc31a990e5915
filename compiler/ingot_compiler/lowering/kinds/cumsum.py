"""``cumsum``: running sums along one axis (ONNX CumSum-14).

In: a group anchored by ``cumsum``. Out: its loop program: units are the other positions, those that
lie together in lanes. Not done here: a parallel scan.
"""

from ingot_compiler.ir.dims import Dim, dim_max, symbol
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
    Load,
    LoopProgram,
    Store,
    Value,
)


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

    step = symbol("i")
    before = dim_max(step - 1, 0)

    def unless_first(value: Value) -> Value:
        zero = Constant(0.0 if dtype in FLOATS else 0, dtype)
        return Apply("select", (Compare("equal", step, 0), zero, value), dtype)

    previous = unless_first(Load(buffers.number(result), offset(result, before)))
    own: Value = Load(buffers.number(x), offset(x, before if exclusive else step))
    total = Apply("add", (previous, unless_first(own) if exclusive else own), dtype)
    store = Store(buffers.number(result), offset(result, step), total)
    loop = For("i", shape[axis], "serial", lines.in_lanes((store,)))
    grain = grain_for(shape[axis] * 4 * lines.lines_of_unit)
    return finish_program(buffers, (loop,), lines.unit_count, grain)


CUMSUM = Kind("cumsum", one_kernel(lower_cumsum), ResultLayout.ROW_MAJOR, takes_followers=False)
