"""A resampling without the point of the result: operand, factors, regions, how taps are summed.

In: a group anchored by ``resize``. Out: ``ResizeScope``. Not done here: coordinates and weights
(``resize_axis``), sums and loops (``resize``).
"""

from __future__ import annotations

import math

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.rules.resample_rules import tap_count
from ingot_compiler.ir.sizes.simplest_fraction import F64_BITS, simplest_fraction
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import point
from ingot_compiler.lowering.loops.loop_values import COMPARISONS, Apply, Constant, FromIndex, Value
from ingot_runtime.lazy_dataclass import dataclass

WRITTEN_OUT_MAX = 16


def apply(function: str, *arguments: Value) -> Value:
    """A function in f64, in which coordinates are computed."""
    return Apply(function, arguments, "bool" if function in COMPARISONS else "f64")


def number(value: float) -> Value:
    """A number in f64."""
    return Constant(float(value), "f64")


@dataclass(frozen=True, slots=True)
class ResizeScope:
    """``vectors``: scales and regions that are operands, if any; positions count the axes that are
    resized."""

    node: Node
    x: Operand
    vectors: tuple[Operand, ...]
    elements: Elements

    @staticmethod
    def of(group: Group) -> ResizeScope:
        """Read a group."""
        elements, node = Elements(group, GroupBuffers(group)), group.nodes[group.anchor]
        x, *vectors = (elements.operands[value] for value in node.operands)
        return ResizeScope(node, x, tuple(vectors), elements)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of x that are resized."""
        return self.node.ints("axes")

    @property
    def dtype(self) -> DType:
        """The element type of x and of the result."""
        return self.x.type.dtype

    @property
    def compute(self) -> DType:
        """The element type of the sums."""
        return "f64" if self.dtype == "f64" else "f32"

    def narrowed(self, weight: Value) -> Value:
        """A weight in the element type of the sums."""
        return weight if self.compute == "f64" else Apply("cast", (weight,), "f32")

    # ---- one axis --------------------------------------------------------------------------------

    def size(self, position: int) -> Dim:
        """The size of x along an axis."""
        return self.x.type.shape[self.axes[position]]

    def new_size(self, position: int) -> Dim:
        """The size of the result along an axis."""
        return self.node.dims("sizes")[position]

    def given_scale(self, position: int) -> float:
        """The factor that the op states, 0 where it is one of an operand or follows from sizes."""
        return self.node.reals("scales")[position]

    def factor(self, position: int) -> tuple[Value, Value]:
        """The factor of an axis: a numerator and a denominator, which are integers where it is no
        entry of an operand."""
        sizes = self.new_size(position), self.size(position)
        new, size = (FromIndex(each, "f64") for each in sizes)
        if self.vectors:
            entry = self._entry(0, position)
            follows = apply("equal", entry, number(0))
            return apply("select", follows, new, entry), apply("select", follows, size, number(1))
        if given := self.given_scale(position):
            factor = simplest_fraction(given, F64_BITS)
            return number(factor.numerator), number(factor.denominator)
        return new, size

    def shrink(self, position: int) -> Value | None:
        """The factor that widens an antialias filter; None for a filter of its own width."""
        if not self.is_antialias:
            return None
        return apply("min", apply("div", *self.factor(position)), number(1))

    def region(self, position: int) -> tuple[Value, Value]:
        """Start and end of an axis's region of interest, as fractions."""
        ends = position, position + len(self.axes)
        if self.vectors:
            return self._entry(1, ends[0]), self._entry(1, ends[1])
        region = self.node.reals("roi")
        return number(region[ends[0]]), number(region[ends[1]])

    def _entry(self, vector: int, position: int) -> Value:
        """An entry of the scales (0) or of the region (1) that are operands."""
        operand = self.vectors[vector]
        return self.elements.load(operand, point(operand.type.shape, (position,)))

    # ---- sums ------------------------------------------------------------------------------------

    @property
    def is_antialias(self) -> bool:
        """Whether filters are widened where the result is smaller."""
        return self.node.flag("antialias")

    @property
    def is_normalised(self) -> bool:
        """Whether the weights are divided by their sum."""
        return self.is_antialias or self.node.flag("exclude_outside")

    @property
    def is_summed(self) -> bool:
        """Whether taps are looped over."""
        if self.is_antialias and self.vectors:
            return True
        counts = (self.tap_range(position)[1] for position in range(len(self.axes)))
        return math.prod(counts) > WRITTEN_OUT_MAX

    def tap_range(self, position: int) -> tuple[int, int]:
        """First tap relative to the floor of the coordinate, and their number, where these are
        known."""
        return tap_count(self.node.text("mode"), self.given_scale(position), self.is_antialias)
