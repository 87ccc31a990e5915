"""Pools over near neighbours whose results lie where their elements do, in small images: a plane is
one row, whose vectors go on from line to line.

In: a group anchored by a pool. Out: what runs, or None where windows or planes are larger, or the
result has another size. Not done here: other pools of rows (``pool_lanes``, ``pool_short_rows``),
channels that lie together (``pool``).

All vectors of a plane are written out, so that which lanes of a tap are outside, and what an
average divides by, are known numbers. Rows of 17 would leave almost half of all lanes empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, View
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.guards import is_within
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.image_rows import COLUMN
from ingot_compiler.lowering.kinds.pool_window import average_count, clipped_windows, whole_window
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Local, Value
from ingot_compiler.lowering.loops.program import For, Reduce, Statement

_KERNEL_MAX = 3  # taps along an axis: more are fewer steps along one axis after the other
_VECTORS_MAX = 64  # of a plane: each is some code
_PLANE_MAX = 512  # elements: larger planes take less time joined along one axis after the other


def has_small_planes(node: Node, x: Shape, result: Shape, target: KernelTarget) -> bool:
    """Whether planes of known sizes, of which the result has the same, are few vectors, and windows
    have few elements, one apart."""
    sizes = [size for size in x[2:] if isinstance(size, int)]
    if (
        len(x) != 4
        or len(sizes) < 2
        or x[2:] != result[2:]
        or max(node.ints("kernel")) > _KERNEL_MAX
    ):
        return False
    is_near = {*node.ints("strides"), *node.ints("dilations")} == {1}
    return is_near and 0 < sizes[0] * sizes[1] <= min(_PLANE_MAX, _VECTORS_MAX * target.f32_lanes)


def lower_small_planes(group: Group, target: KernelTarget) -> LoweredGroup | None:
    """Planes in units."""
    anchor, types = group.nodes[group.anchor], dict(group.types)
    x, shape = types[anchor.operands[0]], types[anchor.results[0]].shape
    if x.dtype != "f32" or not has_small_planes(anchor, x.shape, shape, target):
        return None
    elements = Elements(group, GroupBuffers(group))
    views = [elements.operand(anchor, 0).view, *(result.view for result in group.results)]
    if not all(_is_one_row(view, shape) for view in views):
        return None
    plane = dim_product(shape[2:])
    assert isinstance(plane, int)
    body = tuple(_vectors(group, elements, plane, target.f32_lanes))
    work = dim_mul(dim_product(anchor.ints("kernel")), plane // 4 + 1)
    units = dim_product(shape[:2])
    return one_launch(finish_program(elements.buffers, body, units, grain_for(work)))


def _is_one_row(view: View, shape: Shape) -> bool:
    """Whether a plane lies in one piece, and channels do not."""
    return view.strides[2:] == (shape[3], 1) and view.strides[1] != 1


def _vectors(group: Group, elements: Elements, plane: int, lanes: int) -> Iterator[Statement]:
    """A loop of one round for each vector."""
    anchor = group.nodes[group.anchor]
    shape = elements.types[anchor.results[0]].shape
    for first in range(0, plane, lanes):
        variable = f"{COLUMN}{first}"
        place = first + symbol(variable)
        space = Space(shape, (Run((0, 1), symbol(INDEX)), Run((2, 3), place)))
        body = _element(group, elements, space, place)
        yield For(variable, min(lanes, plane - first), "vector", body)


def _element(group: Group, elements: Elements, space: Space, place: Dim) -> tuple[Statement, ...]:
    """The statements that store the element at ``place`` of its plane."""
    anchor = group.nodes[group.anchor]
    source, is_average = elements.types[anchor.operands[0]].shape, anchor.op == "average_pool"
    function: ReduceFunction = "sum" if is_average else "max"
    tap, beside = _tap(elements, anchor, space, place), Local("beside", "f32")
    high, wide = anchor.ints("kernel")
    of_row = Reduce("beside", function, "t1", wide, "f32", (), tap, unroll=True)
    total = Reduce("total", function, "t0", high, "f32", (of_row,), beside, unroll=True)
    result: Value = Local("total", "f32")
    if is_average:
        count = average_count(group, space, clipped_windows(anchor, space, source))
        result = Apply("div", (result, FromIndex(count, "f32")), "f32")
    elements.given[anchor.results[0]] = result
    return (total, *elements.stored(group.results[0], space))


def _tap(elements: Elements, anchor: Node, space: Space, place: Dim) -> Value:
    """What one tap adds; nothing where it is outside."""
    x = elements.operand(anchor, 0)
    source = x.type.shape
    down, along = (
        whole_window(anchor, axis, space.index(2 + axis)).source(symbol(f"t{axis}"))
        for axis in (0, 1)
    )
    above, before = anchor.dims("pads_before")
    moved = dim_mul(symbol("t0") - above, source[3]) + symbol("t1") - before
    runs = Run((0, 1), symbol(INDEX)), Run((2, 3), place + moved)
    inside = is_within(0, down, source[2]), is_within(0, along, source[3])
    elsewhere = Constant(0.0 if anchor.op == "average_pool" else float("-inf"), "f32")
    value = elements.load(x, Space(source, runs))
    return Apply("select", (Apply("logical_and", inside, "bool"), value, elsewhere), "f32")
