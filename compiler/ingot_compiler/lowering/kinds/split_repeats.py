"""A copy of short rows that are repeated outside of them, as two kernels: one writes the repeated
part, the other copies it.

In: a group without anchor. Out: what runs, or None where one kernel is as fast. Not done here:
loops (``pointwise``).

A row of few elements costs as much as one of some ten. Where something outside of short rows is
repeated that is paid once, for what is copied then are long runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product, substitute, symbols_of
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.views import Shape, dense_view, storage_order
from ingot_compiler.lowering.kinds.launches_in_turn import WORKSPACE, launches_in_turn
from ingot_compiler.lowering.kinds.touched_views import are_one_run
from ingot_compiler.lowering.loops.program import LoopProgram

_LONG_ROW = 64  # elements
_OPEN_SIZE = 8  # that an axis is taken to have that only a run knows, where rows have to be long


def split_repeats(group: Group, lower: Callable[[Group], LoopProgram]) -> LoweredGroup | None:
    """Both kernels; the one, too, where only a run knows whether rows are short."""
    if group.nodes:
        return None
    (operand,), (result,) = group.operands, group.results
    shape = result.type.shape
    order = [axis for axis in storage_order(result.view, shape) if shape[axis] != 1]
    length = _row_length(order, shape, (operand.view, result.view))
    repeated = _repeated_outside(order, shape, operand.view)
    if not repeated or (isinstance(length, int) and not 0 < length < _LONG_ROW):
        return None
    both = _in_turn(group, repeated, lower)
    if isinstance(length, int):
        return both
    return choose(dim_floordiv(_LONG_ROW - 1, length), both, one_launch(lower(group)))


def _row_length(order: Sequence[int], shape: Shape, views: Sequence[View]) -> Dim:
    """How many elements lie together in both."""
    row = list(order[-1:])
    for axis in reversed(order[:-1]):
        if not are_one_run(views, shape, axis, row[0]):
            break
        row.insert(0, axis)
    return dim_product(tuple(shape[axis] for axis in row))


def _repeated_outside(order: Sequence[int], shape: Shape, view: View) -> list[int]:
    """Axes along which the operand is repeated, with at least a long row inside of them."""
    found: list[int] = []
    for place, axis in enumerate(order):
        inside = dim_product(tuple(shape[each] for each in order[place + 1 :]))
        least = substitute(inside, dict.fromkeys(symbols_of(inside), _OPEN_SIZE))
        is_repeated = view.strides[axis] == 0 and isinstance(shape[axis], int)
        if is_repeated and isinstance(least, int) and least >= _LONG_ROW:
            found.append(axis)
    return found


def _in_turn(
    group: Group, repeated: Sequence[int], lower: Callable[[Group], LoopProgram]
) -> LoweredGroup:
    """What is repeated goes to workspace, from there to the result."""
    (operand,), (result,) = group.operands, group.results
    shape = result.type.shape
    once = tuple(1 if axis in repeated else size for axis, size in enumerate(shape))
    tensor_type = TensorType(result.type.dtype, once)
    view = dense_view(once, storage_order(result.view, shape))
    strides = [0 if axis in repeated else stride for axis, stride in enumerate(view.strides)]
    between = Operand(operand.value, tensor_type, WORKSPACE, view)
    copied = replace(between, type=result.type, view=View(tuple(strides)))
    types = tuple(
        (value, tensor_type) if value == operand.value else (value, each)
        for value, each in group.types
    )
    parts = (
        replace(
            group, operands=(replace(operand, type=tensor_type),), results=(between,), types=types
        ),
        replace(group, operands=(copied,)),
    )
    return launches_in_turn(group, parts, tuple(map(lower, parts)), between)
