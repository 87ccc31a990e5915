"""``cumsum``: running sums along one axis (ONNX CumSum-14).

In: a group anchored by ``cumsum``. Out: its loop program: units are the other positions. Not done
here: a parallel scan.
"""

from ingot_compiler.ir.dims import Dim, dim_max, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
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
from ingot_compiler.lowering.space import Run, Space


def lower_cumsum(group: Group, target: KernelTarget) -> LoopProgram:
    """Element i is the stored element before it plus the operand's."""
    del target
    anchor = group.nodes[group.anchor]
    x, result = group.operands[0], group.results[0]
    axis = anchor.integer("axis")
    exclusive, reverse = anchor.flag("exclusive"), anchor.flag("reverse")
    shape, dtype = x.type.shape, x.type.dtype
    kept = tuple(other for other in range(len(shape)) if other != axis)
    buffers = GroupBuffers(group)

    def offset(operand: Operand, step: Dim) -> Dim:
        index = shape[axis] - 1 - step if reverse else step
        return Space(shape, (Run(kept, symbol("p")), Run((axis,), index))).offset(operand.view)

    step = symbol("i")
    before = dim_max(step - 1, 0)
    is_first = Compare("equal", step, 0)
    zero = Constant(0 if dtype not in ("f16", "bf16", "f32", "f64") else 0.0, dtype)

    def unless_first(value: Value) -> Value:
        return Apply("select", (is_first, zero, value), dtype)

    previous = unless_first(Load(buffers.number(result), offset(result, before)))
    own: Value = Load(buffers.number(x), offset(x, before if exclusive else step))
    total = Apply("add", (previous, unless_first(own) if exclusive else own), dtype)
    loop = For(
        "i", shape[axis], "serial", (Store(buffers.number(result), offset(result, step), total),)
    )
    units = dim_product(tuple(shape[other] for other in kept))
    return finish_program(buffers, (loop,), units, grain_for(shape[axis] * 4))


CUMSUM = Kind("cumsum", one_kernel(lower_cumsum), ResultLayout.ROW_MAJOR, takes_followers=False)
