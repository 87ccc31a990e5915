"""``rank_rows``: the order of short rows, each key of which goes to the place of its rank.

In: a group of one ``argsort`` of few keys a row; workspace where not all are wanted. Out: its loop
program: units are rows. Not done here: longer rows (``select_least``, ``select_candidates``,
``radix_sort``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.rank_sort import rank_each
from ingot_compiler.lowering.kinds.strided_lines import LINE, strided_loop, unit_count, work_of_unit
from ingot_compiler.lowering.loops.loop_values import FromIndex, Load, Value
from ingot_compiler.lowering.loops.program import For, LoopProgram, Statement, Store


def lower_rank_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """All keys are ordered, and the first positions copied where not all are wanted."""
    buffers, keys = GroupBuffers(group), group.operands[0]
    result, ordered = group.results[0], group.results[-1]
    shape, count = keys.type.shape, result.type.shape[-1]
    length, lines, c = shape[-1], line_count(shape, len(shape) - 1), symbol("c")
    row = dim_mul(LINE if count == length else symbol(INDEX), length)

    def key_at(index: Dim) -> Value:
        return load_of_line(buffers, keys, len(shape) - 1, index, LINE)

    def put(place: Dim, number: Dim) -> tuple[Store, ...]:
        at = row + place
        return (Store(buffers.number(ordered), at, FromIndex(number, "i64")),)

    body: list[Statement] = [rank_each(key_at, length, keys.type.dtype, put, target.f32_lanes)]
    if count != length:
        found = Load(buffers.number(ordered), row + c)
        first = Store(buffers.number(result), dim_mul(LINE, count) + c, found)
        body.append(For("c", count, "vector", (first,)))
    loop = strided_loop(lines, tuple(body))
    grain = grain_for(work_of_unit(lines, dim_mul(length, length)))
    return finish_program(buffers, (loop,), unit_count(lines), grain)


def workspaces(keys: TensorType, count: Dim) -> list[TensorType]:
    """What the kernel needs beside keys and result: where a unit orders all positions."""
    if count == keys.shape[-1]:
        return []
    units = unit_count(line_count(keys.shape, keys.rank - 1))
    return [TensorType("i64", (units, keys.shape[-1]))]


RANK_ROWS = Kind("rank_rows", one_kernel(lower_rank_rows))
