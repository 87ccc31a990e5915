"""Boxes in loops: their areas, what two of them share.

In: the sides of boxes as values. Out: values. Not done here: which boxes are compared
(``suppress_overlaps``).
"""

from __future__ import annotations

from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Local, Value
from ingot_runtime.lazy_dataclass import dataclass

_ZERO = Constant(0.0, "f32")
SHARED = Local("shared", "f32")
"""The area that two boxes share, once it is named."""


def _f(function: str, left: Value, right: Value) -> Value:
    return Apply(function, (left, right), "bool" if function in ("less", "logical_and") else "f32")


@dataclass(frozen=True, slots=True)
class Box:
    """The sides of a box, in the order in which they are stored."""

    top: Value
    left: Value
    bottom: Value
    right: Value

    @staticmethod
    def between(y: Value, x: Value, other_y: Value, other_x: Value) -> Box:
        """The box of two opposite corners."""
        least, most = ((_f(name, y, other_y), _f(name, x, other_x)) for name in ("min", "max"))
        return Box(*least, *most)

    @staticmethod
    def centred(x: Value, y: Value, width: Value, height: Value) -> Box:
        """The box around a centre."""
        half = Constant(0.5, "f32")
        down, across = _f("mul", height, half), _f("mul", width, half)
        least, most = ((_f(name, y, down), _f(name, x, across)) for name in ("sub", "add"))
        return Box(*least, *most)

    @property
    def sides(self) -> tuple[Value, ...]:
        """All of them."""
        return self.top, self.left, self.bottom, self.right

    def area(self) -> Value:
        """Height times width."""
        return _f("mul", _f("sub", self.bottom, self.top), _f("sub", self.right, self.left))

    def shared_area(self, other: Box) -> Value:
        """The area that lies in both."""
        height = _shared_length(self.top, self.bottom, other.top, other.bottom)
        return _f("mul", height, _shared_length(self.left, self.right, other.left, other.right))

    def meets(self, other: Box, limit: Value) -> Value:
        """Whether the boxes share more than ``limit`` of the union; ``SHARED`` is named."""
        union = _f("sub", _f("add", self.area(), other.area()), SHARED)
        overlaps = _f("less", limit, _f("div", SHARED, union))
        return _f("logical_and", _f("less", _ZERO, SHARED), overlaps)


def _shared_length(first: Value, last: Value, other_first: Value, other_last: Value) -> Value:
    """The length that two ranges share."""
    length = _f("sub", _f("min", last, other_last), _f("max", first, other_first))
    return _f("max", length, _ZERO)
