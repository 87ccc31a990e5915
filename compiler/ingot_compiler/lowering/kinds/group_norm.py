"""``group_norm``: statistics over the channels of a group and all positions of an image.

In: a group anchored by ``group_norm``. Out: what runs. Units are (image, group), or those of
``group_norm_lanes`` where channels lie together. Not done here: fusion before it.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.group_norm_lanes import (
    has_channel_lanes,
    lower_in_channel_lanes,
)
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Reduce, Statement
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _GroupNorm:
    """The unit's geometry: ``channels`` of one group from ``first`` on, at all ``positions`` of one
    image."""

    group: Group
    buffers: GroupBuffers
    operands: tuple[Operand, Operand, Operand]
    groups: int
    channels: Dim
    positions: Dim
    dtype: DType

    def apply(self, function: str, *arguments: Value) -> Value:
        """An operation in the tensor's dtype."""
        return Apply(function, arguments, self.dtype)

    def channel(self, variable: str) -> Dim:
        """The channel that counts ``variable`` within the group."""
        return dim_mul(dim_mod(symbol("p"), self.groups), self.channels) + symbol(variable)

    def space(self, channel: str, position: str) -> Space:
        """A point of the image."""
        shape = self.operands[0].type.shape
        image = Run((0,), dim_floordiv(symbol("p"), self.groups))
        spatial = Run(tuple(range(2, len(shape))), symbol(position))
        return Space(shape, (image, Run((1,), self.channel(channel)), spatial))

    def load(self, channel: str, position: str) -> Value:
        """Element of the image."""
        x = self.operands[0]
        return Load(self.buffers.number(x), self.space(channel, position).offset(x.view))

    def parameter(self, number: int, channel: str) -> Value:
        """Scale (1) or bias (2) of a channel."""
        operand = self.operands[number]
        index = operand.view.offset + dim_mul(self.channel(channel), operand.view.strides[0])
        return Load(self.buffers.number(operand), index)

    def axes(self, name: str) -> list[tuple[str, Dim]]:
        """Loop variables, outermost first: the axis that lies together is innermost, so that lanes
        run along it."""
        order = [(f"{name}_s", self.positions), (f"{name}_c", self.channels)]
        return order if self.operands[0].view.strides[1] == 1 else order[::-1]

    def total(self, name: str, value: Value) -> Reduce:
        """``name = sum of value`` over the unit."""
        return nested_reduce(name, "sum", self.axes(name), self.dtype, ((), value), lanes=True)


def lower_group_norm(group: Group, target: KernelTarget) -> LoweredGroup:
    """Lanes run along channels, or along the positions of one channel."""
    del target
    if has_channel_lanes(group):
        return lower_in_channel_lanes(group)
    return one_launch(_whole(group))


def _whole(group: Group) -> LoopProgram:
    """Sum, sum of squared deviations, then one pass that stores."""
    anchor = group.nodes[group.anchor]
    operands = {operand.value: operand for operand in group.operands}
    x, scale, bias = (operands[value] for value in anchor.operands)
    groups = anchor.integer("groups")
    shape = x.type.shape
    channels, positions = dim_floordiv(shape[1], groups), dim_product(shape[2:])
    dtype = dict(group.types)[anchor.results[0]].dtype
    norm = _GroupNorm(
        group, GroupBuffers(group), (x, scale, bias), groups, channels, positions, dtype
    )
    body = (*_statistics(norm), _normalise(norm))
    return finish_program(
        norm.buffers, body, dim_mul(shape[0], groups), grain_for(dim_mul(channels, positions))
    )


def _statistics(norm: _GroupNorm) -> tuple[Statement, ...]:
    """``mean`` and ``inverse``, the reciprocal of the deviation."""
    epsilon = norm.group.nodes[norm.group.anchor].real("epsilon")
    size = FromIndex(dim_mul(norm.channels, norm.positions), norm.dtype)
    deviation = norm.apply("sub", norm.load("squares_c", "squares_s"), Local("mean", norm.dtype))
    variance = norm.apply("div", Local("squares", norm.dtype), size)
    spread = norm.apply("sqrt", norm.apply("add", variance, Constant(epsilon, norm.dtype)))
    return (
        norm.total("total", norm.load("total_c", "total_s")),
        Let("mean", norm.apply("div", Local("total", norm.dtype), size)),
        norm.total("squares", norm.apply("mul", deviation, deviation)),
        Let("inverse", norm.apply("reciprocal", spread)),
    )


def _normalise(norm: _GroupNorm) -> For:
    """Scale, shift, whatever is fused behind, store."""
    group = norm.group
    at = norm.space("c", "s")
    centred = norm.apply("sub", norm.load("c", "s"), Local("mean", norm.dtype))
    scaled = norm.apply(
        "mul", norm.apply("mul", centred, Local("inverse", norm.dtype)), norm.parameter(1, "c")
    )
    elements = Elements(group, norm.buffers)
    shifted = elements.let(norm.apply("add", scaled, norm.parameter(2, "c")), norm.dtype)
    elements.given[group.nodes[group.anchor].results[0]] = shifted
    (outer, outer_extent), (inner, inner_extent) = norm.axes("")
    lanes = For(inner[1:], inner_extent, "vector", elements.stored(group.results[0], at))
    return For(outer[1:], outer_extent, "serial", (lanes,))


GROUP_NORM = Kind("group_norm", lower_group_norm)
