"""Kernels whose elements are independent: elementwise chains, gathers, pads, copies between
layouts.

In: a group without anchor. Out: its loop program. Not done here: reductions and contractions (their
own kinds).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand, View
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import For, Local, LoopProgram, Store, Transpose, Value
from ingot_compiler.lowering.ops import INDEXED_OPERANDS
from ingot_compiler.lowering.space import Run, Space, ceil_div
from ingot_compiler.lowering.views import broadcast_view, storage_order

BLOCK_ELEMENTS = 2048  # a unit of a tensor that is one long run: 8 KB of f32
# Of a transposed plane, multiples of the lanes of every target: few rows at a time, so that each is
# written in one go.
BLOCK_ROWS, BLOCK_COLUMNS = 16, 256
PLANE_DTYPES = frozenset(
    ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
)
SHORT_AXIS = 8  # an innermost axis below this wastes lanes; look for a longer one


@dataclass(frozen=True, slots=True)
class _Plane:
    """Axes of (the outer loop, rows, columns), outermost first; ``operands`` are contiguous along
    the rows."""

    axes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class _Loops:
    """Axes of the outer, flat loop and of the vector loop, outermost first."""

    outer: tuple[int, ...]
    inner: tuple[int, ...]


def lower_pointwise(group: Group, target: KernelTarget) -> LoopProgram:
    """One parallel loop over the outer axes, one vector loop over the inner ones, in the result's
    storage order."""
    del target
    plane = _choose_plane(group)
    return _lower_scan(group) if plane is None else _lower_plane(group, plane)


def _lower_scan(group: Group) -> LoopProgram:
    """Every operand is read as the result's innermost axis has it."""
    result = group.results[0]
    shape = result.type.shape
    loops = _choose_loops(group)
    outer_count = dim_product(tuple(shape[axis] for axis in loops.outer))
    inner_count = dim_product(tuple(shape[axis] for axis in loops.inner))
    unit, lane = symbol("p"), symbol("j")
    if outer_count == 1:
        space = Space(shape, (Run(loops.inner, dim_mul(unit, BLOCK_ELEMENTS) + lane),))
        extent, length = ceil_div(inner_count, BLOCK_ELEMENTS), _block_length(inner_count, unit)
    else:
        space = Space(shape, (Run(loops.outer, unit), Run(loops.inner, lane)))
        extent, length = outer_count, inner_count
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    value = elements.value(result.value, space)
    body = (*elements.take(), Store(buffers.number(result), space.offset(result.view), value))
    # A single element needs no lanes.
    loop = For("j", length, "vector", body) if loops.inner else For("j", length, "serial", body)
    return finish_program(buffers, (loop,), extent, grain_for(length))


def _lower_plane(group: Group, plane: _Plane) -> LoopProgram:
    """Blocks of a plane whose operands lie along its rows and whose result lies along its
    columns."""
    result = group.results[0]
    shape = result.type.shape
    outer, rows, columns = (dim_product(tuple(shape[axis] for axis in axes)) for axes in plane.axes)
    unit = symbol("p")
    strips, blocks = ceil_div(columns, BLOCK_COLUMNS), ceil_div(rows, BLOCK_ROWS)
    row_start = dim_mul(dim_mod(dim_floordiv(unit, strips), blocks), BLOCK_ROWS)
    column_start = dim_mul(dim_mod(unit, strips), BLOCK_COLUMNS)
    space = Space(shape, tuple(
        Run(axes, variable)
        for axes, variable in zip(
            plane.axes, (dim_floordiv(unit, dim_mul(strips, blocks)), symbol("row"), symbol("column")), strict=True
        )
    ))  # fmt: skip
    buffers = GroupBuffers(group)
    values = tuple(
        (f"plane{number}", buffers.number(operand), space.offset(operand.view))
        for number, operand in enumerate(plane.operands)
    )
    given: dict[int, Value] = {
        operand.value: Local(name, operand.type.dtype)
        for operand, (name, _, _) in zip(plane.operands, values, strict=True)
    }
    elements = Elements(group, buffers, given)
    value = elements.value(result.value, space)
    statement = Transpose(
        "row", rows, row_start, BLOCK_ROWS, "column", columns, column_start, BLOCK_COLUMNS, values,
        (*elements.take(), Store(buffers.number(result), space.offset(result.view), value)),
    )  # fmt: skip
    extent = dim_mul(outer, dim_mul(blocks, strips))
    return finish_program(buffers, (statement,), extent, grain_for(BLOCK_ROWS * BLOCK_COLUMNS))


def _block_length(total: Dim, unit: Dim) -> Dim:
    if isinstance(total, int) and total % BLOCK_ELEMENTS == 0:
        return BLOCK_ELEMENTS
    if isinstance(total, int) and total < BLOCK_ELEMENTS:
        return total
    return dim_min(total - unit * BLOCK_ELEMENTS, BLOCK_ELEMENTS)


def _choose_plane(group: Group) -> _Plane | None:
    """The plane of the innermost axes of result and operands, where these differ; None where they
    agree."""
    result = group.results[0]
    shape = result.type.shape
    views = _views(group)
    column = next(
        (
            axis
            for axis, stride in enumerate(result.view.strides)
            if stride == 1 and shape[axis] != 1
        ),
        None,
    )
    if column is None or views is None:
        return None
    across = [operand for operand in group.operands if _lies_across(operand, shape, column)]
    row = next((axis for operand in across for axis in _contiguous(operand, shape)), None)
    operands = tuple(operand for operand in across if row in _contiguous(operand, shape))
    if row is None or any(operand.buffer == result.buffer for operand in operands):
        return None
    rows, columns = [row], [column]
    rest = [
        axis
        for axis in storage_order(result.view, shape)
        if shape[axis] != 1 and axis not in (row, column)
    ]
    for run in (rows, columns):
        while (
            more := next((axis for axis in rest if _merges(views, shape, axis, run[0])), None)
        ) is not None:
            run.insert(0, more)
            rest.remove(more)
    return _Plane((tuple(rest), tuple(rows), tuple(columns)), operands)


def _lies_across(operand: Operand, shape: tuple[Dim, ...], column: int) -> bool:
    """Whether reading a whole operand along ``column`` would jump."""
    own = operand.type.shape == shape and operand.type.dtype in PLANE_DTYPES
    return own and operand.view.strides[column] not in (0, 1) and bool(_contiguous(operand, shape))


def _contiguous(operand: Operand, shape: tuple[Dim, ...]) -> list[int]:
    return [
        axis for axis, stride in enumerate(operand.view.strides) if stride == 1 and shape[axis] != 1
    ]


def _choose_loops(group: Group) -> _Loops:
    result = group.results[0]
    shape = result.type.shape
    order = [axis for axis in storage_order(result.view, shape) if shape[axis] != 1]
    if not order:
        return _Loops((), ())
    vector_axis = _vector_axis(group, order)
    order.remove(vector_axis)
    inner = [vector_axis]
    views = _views(group)
    while order and views is not None and _merges(views, shape, order[-1], inner[0]):
        inner.insert(0, order.pop())
    return _Loops(tuple(order), tuple(inner))


def _vector_axis(group: Group, order: list[int]) -> int:
    """The innermost stored axis, unless it is short and another one is long and contiguous in an
    operand."""
    shape = group.results[0].type.shape
    last = order[-1]
    extent = shape[last]
    if not isinstance(extent, int) or extent >= SHORT_AXIS:
        return last
    for axis in reversed(order[:-1]):
        long_enough = not isinstance(shape[axis], int) or int(str(shape[axis])) >= 2 * SHORT_AXIS
        if long_enough and any(
            operand.type.shape == shape and operand.view.strides[axis] == 1
            for operand in group.operands
        ):
            return axis
    return last


def _views(group: Group) -> list[View] | None:
    """Views of everything the kernel touches, broadcast to the result's shape; None when an op
    indexes freely."""
    shape = group.results[0].type.shape
    types = dict(group.types)
    free = {"iota", "dim_values", *INDEXED_OPERANDS}
    if any(node.op in free for node in group.nodes):
        return None
    inner_shapes = {types[value].shape for node in group.nodes for value in node.results}
    if any(other not in (shape, ()) for other in inner_shapes):
        return None
    operands = (*group.operands, *group.results)
    return [broadcast_view(operand.view, operand.type.shape, shape) for operand in operands]


def _merges(views: list[View], shape: tuple[Dim, ...], outer: int, inner: int) -> bool:
    return all(view.strides[outer] == dim_mul(view.strides[inner], shape[inner]) for view in views)


POINTWISE = Kind("pointwise", one_kernel(lower_pointwise))
