"""Matrix products of integers: plain loops, columns in lanes, sums that wrap.

In: a group anchored by ``matmul`` of an integer type. Out: its loop program: units are rows. Not done here: f32 and f64.
"""

from ingot_compiler.ir.dims import dim_product, symbol
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import Apply, For, Load, Local, LoopProgram, Reduce, Store
from ingot_compiler.lowering.space import Run, Space
from ingot_compiler.lowering.views import broadcast_view


def lower_matmul_integer(group: Group, target: KernelTarget) -> LoopProgram:
    """result[row, j] = sum over k of a[row, k] * b[k, j]."""
    del target
    anchor = group.nodes[group.anchor]
    operands = {operand.value: operand for operand in group.operands}
    a, b = (operands[value] for value in anchor.operands)
    kind = dict(group.types)[anchor.results[0]]
    batch = tuple(range(kind.rank - 2))
    buffers = GroupBuffers(group)

    def load(operand: Operand, row: str, column: str) -> Load:
        shape = (*kind.shape[:-2], *operand.type.shape[-2:])
        view = broadcast_view(operand.view, operand.type.shape, shape)
        row_index = where.index(kind.rank - 2) if row == "row" else symbol(row)
        runs = (
            *(Run((axis,), where.index(axis)) for axis in batch),
            Run((kind.rank - 2,), row_index),
            Run((kind.rank - 1,), symbol(column)),
        )
        return Load(buffers.number(operand), Space(shape, runs).offset(view))

    where = Space(kind.shape, (Run((*batch, kind.rank - 2), symbol("p")), Run((kind.rank - 1,), symbol("j"))))
    product = Apply("mul", (load(a, "row", "k"), load(b, "k", "j")), kind.dtype)
    total = Reduce("total", "sum", "k", a.type.shape[-1], kind.dtype, (), product)
    elements = Elements(group, buffers, {anchor.results[0]: Local("total", kind.dtype)})
    result = group.results[0]
    value = elements.value(result.value, where)
    store = Store(buffers.number(result), where.offset_of(result.view, result.type.shape), value)
    body = (For("j", kind.shape[-1], "vector", (total, *elements.take(), store)),)
    units = dim_product(kind.shape[:-1])
    return finish_program(buffers, body, units, grain_for(kind.shape[-1] * a.type.shape[-1]))


MATMUL_INTEGER = Kind("matmul_integer", one_kernel(lower_matmul_integer), ResultLayout.ROW_MAJOR)
