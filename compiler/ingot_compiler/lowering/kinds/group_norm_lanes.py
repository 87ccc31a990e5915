"""``group_norm`` of an image whose channels lie together: lanes run along channels of all groups.

In: a group anchored by ``group_norm``. Out: what runs, one launch with workspace for the sums of
channels. Not done here: images that lie row by row (``group_norm``).

A unit is some whole groups of one image. It walks over the positions in the order in which they
lie, and adds to a sum for each channel; the sums of a group's channels are added afterwards. So all
lanes work however few channels a group has. Sums are made of sums over ``_CHUNK`` positions, which
keeps them exact where positions are many.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.kinds.launches_in_turn import WORKSPACE, launches_in_turn
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_CHANNELS = 128  # of a unit, about: rows of some cache lines, and enough units for threads
_CHUNK = 64  # positions whose sum is one chain
_CHUNK_SUM, _MEAN, _INVERSE = range(3)  # rows of a unit's workspace
_C = symbol("c")


def has_channel_lanes(group: Group) -> bool:
    """Whether the channels of the image lie together and their number is known."""
    types = dict(group.types)
    anchor = group.nodes[group.anchor]
    (x,) = (operand for operand in group.operands if operand.value == anchor.operands[0])
    dtype = types[anchor.results[0]].dtype
    return x.view.strides[1] == 1 and isinstance(x.type.shape[1], int) and dtype in ("f32", "f64")


@dataclass(frozen=True, slots=True)
class _Unit:
    """``block`` channels of one image: whole groups of ``channels`` each."""

    group: Group
    buffers: GroupBuffers
    workspace: int
    operands: tuple[Operand, ...]
    channels: int
    block: int
    dtype: DType

    @property
    def shape(self) -> tuple[Dim, ...]:
        """That of the whole tensor."""
        return self.operands[0].type.shape

    @property
    def block_count(self) -> Dim:
        """Units of one image."""
        return dim_floordiv(self.shape[1], self.block)

    @property
    def positions(self) -> Dim:
        """The number of positions of one image."""
        return dim_product(self.shape[2:])

    def apply(self, function: str, *arguments: Value) -> Value:
        """An operation in the tensor's dtype."""
        return Apply(function, arguments, self.dtype)

    def channel(self) -> Dim:
        """The channel of lane ``c``."""
        return dim_mul(dim_mod(symbol(INDEX), self.block_count), self.block) + _C

    def point(self, position: Dim) -> Space:
        """Lane ``c`` at a position of the image."""
        image = Run((0,), dim_floordiv(symbol(INDEX), self.block_count))
        spatial = Run(tuple(range(2, len(self.shape))), position)
        return Space(self.shape, (image, Run((1,), self.channel()), spatial))

    def load(self, position: Dim) -> Value:
        """That element."""
        x = self.operands[0]
        return Load(self.buffers.number(x), self.point(position).offset(x.view))

    def parameter(self, number: int) -> Value:
        """Scale (1) or bias (2) of lane ``c``."""
        operand = self.operands[number]
        index = operand.view.offset + dim_mul(self.channel(), operand.view.strides[0])
        return Load(self.buffers.number(operand), index)

    def place(self, row: int, channel: Dim = _C) -> Dim:
        """Where the workspace has a row's number of a channel of the unit."""
        return dim_mul(dim_mul(symbol(INDEX), 3) + row, self.block) + channel

    def read(self, row: int, channel: Dim = _C) -> Value:
        """That number."""
        return Load(self.workspace, self.place(row, channel))

    def store(self, row: int, value: Value) -> Statement:
        """Store it for all lanes."""
        return self.lanes((Store(self.workspace, self.place(row), value),))

    def lanes(self, body: tuple[Statement, ...]) -> Statement:
        """Run for all lanes."""
        return For("c", self.block, "vector", body)


def lower_in_channel_lanes(group: Group) -> LoweredGroup:
    """Sums, squared deviations, then one pass that stores."""
    anchor, types = group.nodes[group.anchor], dict(group.types)
    by_value = {operand.value: operand for operand in group.operands}
    operands = tuple(by_value[value] for value in anchor.operands)
    shape, groups = operands[0].type.shape, anchor.integer("groups")
    assert isinstance(shape[1], int)
    dtype, channels = types[anchor.results[0]].dtype, shape[1] // groups
    block = channels * _groups_of_block(groups, channels)
    count = dim_product((shape[0], shape[1], 3))
    sums = Operand(WORKSPACE, TensorType(dtype, (count,)), WORKSPACE, View((1,)))
    part = replace(group, results=(*group.results, sums))
    buffers = GroupBuffers(part)
    unit = _Unit(group, buffers, buffers.number(sums), operands, channels, block, dtype)
    units = dim_mul(shape[0], unit.block_count)
    body = (*_statistics(unit), _normalise(unit))
    program = finish_program(buffers, body, units, grain_for(dim_mul(unit.positions, block // 4)))
    return launches_in_turn(group, (part,), (program,), sums)


def _groups_of_block(groups: int, channels: int) -> int:
    """How many groups are a unit: a divisor of all."""
    fitting = [n for n in range(1, groups + 1) if groups % n == 0 and n * channels <= _CHANNELS]
    return max(fitting, default=1)


def _sum(unit: _Unit, row: int, value: Value) -> tuple[Statement, ...]:
    """The sum over all positions of a value at position ``s`` of a chunk, for each channel."""
    start = dim_mul(symbol("chunk"), _CHUNK)
    size = dim_min(_CHUNK, dim_add(unit.positions, dim_mul(start, -1)))
    zero = Constant(0.0, unit.dtype)
    total = unit.apply("add", unit.read(row), unit.read(_CHUNK_SUM))
    one = unit.store(_CHUNK_SUM, unit.apply("add", unit.read(_CHUNK_SUM), value))
    chunk = (
        unit.store(_CHUNK_SUM, zero),
        For("s", size, "serial", (one,)),
        unit.store(row, total),
    )
    return (
        unit.store(row, zero),
        For("chunk", ceil_div(unit.positions, _CHUNK), "serial", chunk),
    )


def _of_group(unit: _Unit, row: int, value: Value) -> Statement:
    """Give each channel of a group the value that its total, ``Local("total")``, leads to."""
    first = dim_mul(symbol("g"), unit.channels)
    channel = first + symbol("k")
    sums = unit.read(row, channel)
    total = Reduce("total", "sum", "k", unit.channels, unit.dtype, (), sums, lanes=True)
    store = Store(unit.workspace, unit.place(row, channel), Local("value", unit.dtype))
    spread = For("k", unit.channels, "vector", (store,))
    groups = unit.block // unit.channels
    return For("g", groups, "serial", (total, Let("value", value), spread))


def _statistics(unit: _Unit) -> tuple[Statement, ...]:
    """Each channel's mean, and the reciprocal of its deviation."""
    position = dim_mul(symbol("chunk"), _CHUNK) + symbol("s")
    size = FromIndex(dim_mul(unit.channels, unit.positions), unit.dtype)
    quotient = unit.apply("div", Local("total", unit.dtype), size)
    epsilon = Constant(unit.group.nodes[unit.group.anchor].real("epsilon"), unit.dtype)
    spread = unit.apply("sqrt", unit.apply("add", quotient, epsilon))
    deviation = unit.apply("sub", unit.load(position), unit.read(_MEAN))
    return (
        *_sum(unit, _MEAN, unit.load(position)),
        _of_group(unit, _MEAN, quotient),
        *_sum(unit, _INVERSE, unit.apply("mul", deviation, deviation)),
        _of_group(unit, _INVERSE, unit.apply("reciprocal", spread)),
    )


def _normalise(unit: _Unit) -> Statement:
    """Scale, shift, whatever is fused behind, store."""
    position, group = symbol("s"), unit.group
    centred = unit.apply("sub", unit.load(position), unit.read(_MEAN))
    scaled = unit.apply("mul", unit.apply("mul", centred, unit.read(_INVERSE)), unit.parameter(1))
    elements = Elements(group, unit.buffers)
    shifted = elements.let(unit.apply("add", scaled, unit.parameter(2)), unit.dtype)
    elements.given[group.nodes[group.anchor].results[0]] = shifted
    stored = tuple(elements.stored(group.results[0], unit.point(position)))
    return For("s", unit.positions, "serial", (unit.lanes(stored),))
