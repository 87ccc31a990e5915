"""``select_or_sort``: the first keys of rows where only a run knows how long these are, or how many
keys are wanted: few of long rows are selected, others sorted.

In: a group of one ``argsort``. Out: what runs, a choice of one kernel, and workspace for both. Not
done here: the kernels (``select_candidates``, ``radix_sort``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import dim_floordiv, dim_max, dim_min, dim_mul
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
    wanted, length = result.type.shape[-1], keys.shape[-1]
    count = select_candidates.selected_count(wanted)
    least = select_candidates.least_length(count)
    is_long, is_open = dim_min(1, dim_floordiv(length, least)), not isinstance(wanted, int)
    short = keys if is_open else replace(keys, shape=(*keys.shape[:-1], dim_min(length, least - 1)))
    selecting = select_candidates.workspaces(keys, count)
    needed = [*selecting, *radix_sort.workspaces(short)]
    between = [_workspace(number, each) for number, each in enumerate(needed)]
    selected = replace(group, results=(result, *between[: len(selecting)]))
    ordered = replace(group, results=(result, *between[len(selecting) :]))
    selection = select_candidates.lower_select_candidates(selected, target)
    sort = radix_sort.lower_radix_sort(ordered, target)
    return choose(
        dim_mul(is_long, dim_min(1, dim_max(0, count + 1 - wanted))),
        launches_in_turn(group, (selected,), (selection,), *between),
        launches_in_turn(group, (ordered,), (sort,), *between),
    )


def _workspace(number: int, tensor_type: TensorType) -> Operand:
    value = workspace_number(number)
    return Operand(value, tensor_type, value, dense_view(tensor_type.shape))


SELECT_OR_SORT = Kind("select_or_sort", lower_select_or_sort)
