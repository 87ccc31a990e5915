"""Max and average pooling: windows clipped to the image, channels in lanes where they lie together.

In: a group anchored by ``max_pool`` or ``average_pool``. Out: its launches. Not done here: global
pooling (a ``reduce``), how large windows are divided (``split_pool``), images that lie row by row
(``pool_lanes``, ``pool_planes``, ``pool_short_rows``). Source: ONNX MaxPool-22, AveragePool-22.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.typical import typical
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.image_rows import COLUMN, point_of_row, row_count
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.pool_lanes import is_written_out, lower_pool_lanes
from ingot_compiler.lowering.kinds.pool_planes import lower_small_planes
from ingot_compiler.lowering.kinds.pool_short_rows import lower_short_rows
from ingot_compiler.lowering.kinds.pool_window import average_count, clipped_windows
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.kinds.split_pool import split_pool
from ingot_compiler.lowering.loops import (
    Apply,
    For,
    FromIndex,
    Local,
    LoopProgram,
    Statement,
    Value,
)
from ingot_compiler.lowering.space import Space, point


def lower_pool(group: Group, target: KernelTarget) -> LoweredGroup:
    """One launch, or several where windows are large."""
    anchor = group.nodes[group.anchor]
    written_out = lower_small_planes(group, target) or lower_short_rows(group, target)
    if written_out is not None:
        return written_out
    split = split_pool(group)
    if split is None or is_written_out(anchor):
        by_rows = lower_pool_lanes(group)
        if by_rows is not None:
            return by_rows
    if split is None:
        return one_launch(_program(group, group))
    parts, between = split
    programs = [_program(part, None) for part in parts[:-1]]
    return launches_in_turn(group, parts, (*programs, _program(parts[-1], group)), *between)


def _program(group: Group, whole: Group | None) -> LoopProgram:
    """Units are (image, output row); inside, output columns, then channels. ``whole``: what an
    average is of; None: the group gives a sum."""
    anchor = group.nodes[group.anchor]
    shape, kernel = dict(group.types)[anchor.results[0]].shape, anchor.ints("kernel")
    space = point_of_row(shape, symbol("c"))
    elements = Elements(group, GroupBuffers(group))
    body = (*_total(elements, anchor, whole, space), *elements.stored(group.results[0], space))
    columns = For(COLUMN, shape[-1], "serial", (For("c", shape[1], "vector", body),))
    taps = dim_product(tuple(map(typical, kernel)))
    work = dim_mul(dim_mul(shape[-1], shape[1]), taps)
    return finish_program(elements.buffers, (columns,), row_count(shape), grain_for(work))


def _total(
    elements: Elements, anchor: Node, whole: Group | None, space: Space
) -> tuple[Statement, ...]:
    """The statements after which the anchor's element is given."""
    x = elements.operand(anchor, 0)
    source, dtype = x.type.shape, x.type.dtype
    windows = clipped_windows(anchor, space, source)
    where = tuple(window.source(symbol(f"t{i}")) for i, window in enumerate(windows))
    load = elements.load(x, point(source, (space.index(0), symbol("c"), *where)))
    loops = [(f"t{i}", window.count) for i, window in enumerate(windows)]
    function: ReduceFunction = "max" if anchor.op == "max_pool" else "sum"
    reduce = nested_reduce("total", function, loops, dtype, ((), load), lanes=False)
    total: Value = Local("total", dtype)
    if anchor.op == "average_pool" and whole is not None:
        total = Apply("div", (total, FromIndex(average_count(whole, space), dtype)), dtype)
    elements.given[anchor.results[0]] = elements.let(total, dtype)
    return (reduce, *elements.take())


POOL = Kind("pool", lower_pool, ResultLayout.LIKE_FIRST_OPERAND)
