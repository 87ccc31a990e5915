"""``select_or_sort``: the first keys of rows of open length: long rows are selected from, short ones
sorted.

In: a group of one ``argsort`` of a known number of results. Out: what runs, a choice of one kernel,
and workspace for both. Not done here: the kernels (``select_candidates``, ``radix_sort``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import dim_floordiv, dim_min
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds import radix_sort, select_candidates
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn, workspace_number


def lower_select_or_sort(group: Group, target: KernelTarget) -> LoweredGroup:
    """A row is as long as another: one condition decides for all."""
    (keys,), (result,) = (operand.type for operand in group.operands), group.results
    count = result.type.shape[-1]
    assert isinstance(count, int)
    least = select_candidates.least_length(count)
    short = replace(keys, shape=(*keys.shape[:-1], dim_min(keys.shape[-1], least - 1)))
    selecting = select_candidates.workspaces(keys, count)
    needed = [*selecting, *radix_sort.workspaces(short)]
    between = [_workspace(number, each) for number, each in enumerate(needed)]
    selected = replace(group, results=(result, *between[: len(selecting)]))
    ordered = replace(group, results=(result, *between[len(selecting) :]))
    selection = select_candidates.lower_select_candidates(selected, target)
    sort = radix_sort.lower_radix_sort(ordered, target)
    return choose(
        dim_floordiv(keys.shape[-1], least),
        launches_in_turn(group, (selected,), (selection,), *between),
        launches_in_turn(group, (ordered,), (sort,), *between),
    )


def _workspace(number: int, tensor_type: TensorType) -> Operand:
    value = workspace_number(number)
    return Operand(value, tensor_type, value, dense_view(tensor_type.shape))


SELECT_OR_SORT = Kind("select_or_sort", lower_select_or_sort)
