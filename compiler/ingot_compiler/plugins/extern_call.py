"""For the ``lower`` of a plug-in: a group that is one call of a C function of its library.

In: a claimed group, the function's name, what else it is given. Out: ``LoweredGroup``. Not done
here: the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import (
    GroupLaunch,
    GroupSteps,
    LoweredGroup,
)
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops.loop_values import Address, Constant, FromIndex
from ingot_compiler.lowering.loops.program import Buffer, CallExtern


def extern_call(
    group: Group,
    symbol: str,
    numbers: Sequence[Dim | float] = (),
    scratch: Sequence[tuple[DType, Dim]] = (),
) -> LoweredGroup:
    """One call ``int symbol(operands..., results..., scratch..., numbers...)``.

    Operands and results are pointers to elements that lie row-major, without gaps; ``scratch`` is
    memory for the call alone, of so many elements each, which the memory plan counts. ``numbers``:
    sizes are ``int64_t``, floats are ``double``. The function returns 0, or another number where
    the call has to end with an error.
    """
    buffers = GroupBuffers(group)
    places = [
        Address(buffers.number(operand), operand.view.offset)
        for operand in (*group.operands, *group.results)
    ]
    first = len(buffers.buffers)
    buffers.buffers += [Buffer(dtype, written=True) for dtype, _ in scratch]
    places += [Address(first + number, 0) for number in range(len(scratch))]
    given = [
        Constant(number, "f64") if isinstance(number, float) else FromIndex(number, "i64")
        for number in numbers
    ]
    call = CallExtern(symbol, 0, (*places, *given))
    program = finish_program(buffers, (call,), 1, 1)
    launch = GroupLaunch(0, tuple(range(len(buffers.buffers))))
    return LoweredGroup(GroupSteps((launch,), tuple(scratch)), (program,))
