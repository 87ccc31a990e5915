"""Elementwise kernels whose operands lie along other axes than the result: planes that are turned
in blocks.

In: a group without anchor. Out: its plane, if it has one; the loop program of blocks of that plane.
Not done here: groups all of whose operands lie alike (``pointwise``), registers (the back end).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import dtype_size_bits
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import Shape, broadcast_view, storage_order
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.touched_views import are_one_run, touched_views
from ingot_compiler.lowering.loops.loop_values import Local, Value
from ingot_compiler.lowering.loops.program import For, LoopProgram, Transpose
from ingot_runtime.lazy_dataclass import dataclass

# Multiples of the lanes of every target. Tiles that follow one another along the rows share lines
# of what they read, which no cache keeps from strip to strip of columns that lie a power of 2 apart
# (64@64: 68 us instead of 96 by 16 rows). Units that run beside each other are as many as may be.
BLOCK_ROWS, TEAM_BLOCK_ROWS, BLOCK_COLUMNS = 64, 16, 256
# Columns that are not joined by others: past them, tiles that are not whole cost less than the
# divisions by which each column of a longer run finds where it is.
ENOUGH_COLUMNS = 64
# Rows and columns up to which loads and stores of elements apart are faster than tiles.
_FEW_ROWS, _FEW_COLUMNS = 2, 4
_NARROW_BLOCK = 1024  # elements of a unit along the long side
PLANE_DTYPES = frozenset(
    ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
)


@dataclass(frozen=True, slots=True)
class Plane:
    """Axes of (the outer loop, rows, columns), outermost first; ``operands`` are contiguous along
    the rows."""

    axes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    operands: tuple[Operand, ...]


def lower_plane(group: Group, plane: Plane, target: KernelTarget) -> LoopProgram:
    """Blocks of a plane whose operands lie along its rows and whose result lies along its
    columns."""
    shape = group.results[0].type.shape
    outer, rows, columns = (dim_product(tuple(shape[axis] for axis in axes)) for axes in plane.axes)
    block_rows = _block_rows(plane, target)
    strips, blocks = ceil_div(columns, BLOCK_COLUMNS), ceil_div(rows, block_rows)
    unit, per_plane = symbol("p"), dim_mul(strips, blocks)
    row_start = dim_mul(dim_mod(dim_floordiv(unit, strips), blocks), block_rows)
    column_start = dim_mul(dim_mod(unit, strips), BLOCK_COLUMNS)
    place = dim_floordiv(unit, per_plane), symbol("row"), symbol("column")
    space = Space(shape, tuple(map(Run, plane.axes, place)))
    buffers = GroupBuffers(group)
    values = tuple(
        (f"plane{number}", buffers.number(operand), space.offset(operand.view))
        for number, operand in enumerate(plane.operands)
    )
    block = Transpose(
        "row", rows, row_start, block_rows, "column", columns, column_start, BLOCK_COLUMNS, values,
        _elements(group, plane, buffers).stored(group.results[0], space),
    )  # fmt: skip
    grain = grain_for(block_rows * BLOCK_COLUMNS)
    return finish_program(buffers, (block,), dim_mul(outer, per_plane), grain)


def narrow_plane(group: Group, plane: Plane) -> tuple[Dim, LoopProgram] | None:
    """Where one side of a plane is an axis of an open size and the other several axes: 0 for sizes
    that leave tiles of both sides nearly empty, else 1, and a program with the long side in lanes.
    None where there is no such side, or lanes would divide to find their elements."""
    shape, (outer, *sides) = group.results[0].type.shape, plane.axes
    short, long = sorted(sides, key=len)
    few, many = (dim_product(tuple(shape[axis] for axis in axes)) for axes in (short, long))
    if len(short) > 1 or len(long) == 1 or isinstance(few, int):
        return None
    blocks, unit = ceil_div(many, _NARROW_BLOCK), symbol("p")
    start = dim_mul(dim_mod(unit, blocks), _NARROW_BLOCK)
    place = dim_floordiv(unit, blocks), symbol("few"), start + symbol("j")
    space = Space(shape, tuple(map(Run, (outer, short, long), place)))
    if any(coefficient(space.offset(each.view), "j") is None for each in plane.operands):
        return None
    buffers = GroupBuffers(group)
    stored = Elements(group, buffers).stored(group.results[0], space)
    lanes = For("j", dim_min(_NARROW_BLOCK, many - start), "vector", stored)
    units = dim_mul(dim_product(tuple(shape[axis] for axis in outer)), blocks)
    grain = grain_for(dim_mul(_NARROW_BLOCK, few))
    most = _FEW_ROWS if short == plane.axes[1] else _FEW_COLUMNS
    is_wide = dim_min(1, dim_max(0, dim_add(few, -most)))
    return is_wide, finish_program(buffers, (For("few", few, "serial", (lanes,)),), units, grain)


def _block_rows(plane: Plane, target: KernelTarget) -> int:
    """Return the rows of a block: a whole number of tiles, which are larger for bytes."""
    are_bytes = all(dtype_size_bits(operand.type.dtype) == 8 for operand in plane.operands)
    rows = BLOCK_ROWS if target.team_units == 1 else TEAM_BLOCK_ROWS
    return rows * (2 if are_bytes else 1)


def _elements(group: Group, plane: Plane, buffers: GroupBuffers) -> Elements:
    """What is computed from the plane's operands, which the block reads."""
    given: dict[int, Value] = {
        operand.value: Local(f"plane{number}", operand.type.dtype)
        for number, operand in enumerate(plane.operands)
    }
    return Elements(group, buffers, given)


def find_plane(group: Group) -> Plane | None:
    """The plane of the innermost axes of result and operands, where these differ; None where they
    agree."""
    result, views = group.results[0], touched_views(group)
    shape = result.type.shape
    column = next(iter(_contiguous(result, shape)), None)
    if column is None or views is None:
        return None
    across = [operand for operand in group.operands if _lies_across(operand, shape, column)]
    row = next((axis for operand in across for axis in _contiguous(operand, shape)), None)
    operands = tuple(operand for operand in across if row in _contiguous(operand, shape))
    if row is None or any(operand.buffer == result.buffer for operand in operands):
        return None
    order = [axis for axis in storage_order(result.view, shape) if shape[axis] != 1]
    rest = [axis for axis in order if axis not in (row, column)]
    rows, columns = (_run(views, shape, (axis,), rest) for axis in (row, column))
    columns = _run(_views_beside(group, operands), shape, columns, rest, ENOUGH_COLUMNS)
    return Plane((tuple(rest), rows, columns), operands)


def _views_beside(group: Group, operands: tuple[Operand, ...]) -> list[View]:
    """How all but the plane's operands lie: of these a block reads each column by itself, wherever
    it is, so a few columns may be joined by others."""
    shape = group.results[0].type.shape
    others = [operand for operand in group.operands if operand not in operands]
    return [
        broadcast_view(operand.view, operand.type.shape, shape)
        for operand in (*others, *group.results)
    ]


def _run(
    views: list[View],
    shape: Shape,
    axes: tuple[int, ...],
    rest: list[int],
    enough: int | None = None,
) -> tuple[int, ...]:
    """The axes that ``axes`` continue, outermost first, and these; taken out of ``rest``. No more
    of them than make ``enough`` elements; one whose size only a run knows does."""
    run = list(axes)
    while outer := [other for other in rest if are_one_run(views, shape, other, run[0])]:
        count = dim_product(tuple(shape[axis] for axis in run))
        if enough is not None and not (isinstance(count, int) and count < enough):
            break
        run.insert(0, outer[0])
        rest.remove(outer[0])
    return tuple(run)


def _lies_across(operand: Operand, shape: Shape, column: int) -> bool:
    """Whether reading a whole operand along ``column`` would jump."""
    own = operand.type.shape == shape and operand.type.dtype in PLANE_DTYPES
    return own and operand.view.strides[column] not in (0, 1) and bool(_contiguous(operand, shape))


def _contiguous(operand: Operand, shape: Shape) -> list[int]:
    return [
        axis for axis, stride in enumerate(operand.view.strides) if stride == 1 and shape[axis] != 1
    ]
