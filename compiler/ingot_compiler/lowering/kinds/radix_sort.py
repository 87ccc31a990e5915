"""``radix_sort``: the order of each row by a radix sort from the lowest byte on, which is stable.

In: a group of one ``argsort``; workspace for counts, keys and positions. Out: its loop program:
units are rows. Not done here: few results (``select_least``, ``select_candidates``), short rows
(``rank_rows``).

Where not all keys are wanted, those whose part of the range says that they are beyond are left out
first. Few keys are ranked instead (``rank_sort``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.types import TensorType, dtype_size_bytes
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.row_sort import DIGITS, ROW, DigitCounts, KeyPairs, RowSort
from ingot_compiler.lowering.loops.loop_values import Value
from ingot_compiler.lowering.loops.program import LoopProgram


def lower_radix_sort(group: Group, target: KernelTarget) -> LoopProgram:
    """Keys go from one workspace to another, and positions to the result at last."""
    buffers, keys = GroupBuffers(group), group.operands[0]
    result, counts, *between = group.results
    shape, dtype = keys.type.shape, keys.type.dtype
    length, count, passes = shape[-1], result.type.shape[-1], dtype_size_bytes(dtype)

    def key_at(index: Dim) -> Value:
        return load_of_line(buffers, keys, len(shape) - 1, index)

    numbers = [buffers.number(operand) for operand in between]
    row = dim_mul(ROW, length)
    pairs = tuple(KeyPairs(*pair, row) for pair in zip(numbers[::2], numbers[1::2], strict=True))
    table = DigitCounts(buffers.number(counts), passes + 1)
    sort = RowSort(
        table, pairs, key_at, length, dtype, buffers.number(result), count, target.f32_lanes
    )
    body = sort.order(None, length) if count == length else sort.select()
    units = line_count(shape, len(shape) - 1)
    return finish_program(buffers, body, units, grain_for(dim_mul(length, 4 * passes)))


def workspaces(keys: TensorType) -> list[TensorType]:
    """What the kernel needs beside keys and result: counts, and keys and positions twice."""
    counts = TensorType("i64", (*keys.shape[:-1], dtype_size_bytes(keys.dtype) + 1, DIGITS))
    return [counts, *[keys, TensorType("i64", keys.shape)] * 2]


RADIX_SORT = Kind("radix_sort", one_kernel(lower_radix_sort))
