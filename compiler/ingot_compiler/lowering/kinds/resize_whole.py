"""Axes of a resampling to the nearest elements whose size is multiplied or divided by an integer:
indices need no coordinates.

In: a resampling, the size of one of its axes. Out: ``WholeStep``, or None. Not done here: other
factors (``resize_axis``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.graph import Node
from ingot_runtime.lazy_dataclass import dataclass

_TIMES_MAX = 16
_PARTS = range(2, 9)
_CENTRED = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")


@dataclass(frozen=True, slots=True)
class WholeStep:
    """Index ``i`` of the result is index ``i * parts // times + first`` of the operand, always
    inside."""

    times: int
    parts: int
    first: int

    @property
    def lanes_load_together(self) -> bool:
        """Whether vectors hold whole runs of one element, whatever their length is."""
        return self.times & (self.times - 1) == 0

    def source(self, index: Dim) -> Dim:
        """The index of the operand."""
        return dim_floordiv(dim_mul(index, self.parts), self.times) + self.first


def whole_step(node: Node, position: int, size: Dim) -> WholeStep | None:
    """The step along the axis at ``position`` of those that are resized, where it is a whole
    one; ``size`` is the operand's."""
    if node.text("mode") != "nearest" or len(node.operands) > 1:
        return None
    new, scale = node.dims("sizes")[position], node.reals("scales")[position]
    for times in range(2, _TIMES_MAX + 1):
        if scale in (0, times) and new == dim_mul(size, times):
            return WholeStep(times, 1, 0) if _rounds_to_own(node) else None
    for parts in _PARTS:
        if scale in (0, 1 / parts) and size == dim_mul(new, parts):
            return _divided(node, new, parts)
    return None


def _rounds_to_own(node: Node) -> bool:
    """Whether an element of the result is the one in whose place it lies."""
    coordinates, rounding = node.text("coordinates"), node.text("nearest_mode")
    if coordinates == "asymmetric":
        return rounding == "floor"
    return coordinates in _CENTRED and rounding.startswith("round")


def _divided(node: Node, new: Dim, parts: int) -> WholeStep | None:
    coordinates = node.text("coordinates")
    if coordinates == "asymmetric":
        return WholeStep(1, parts, 0)
    # A result of one element is the first one in this mode.
    is_single = coordinates == "pytorch_half_pixel" and (not isinstance(new, int) or new == 1)
    if coordinates not in _CENTRED or is_single:
        return None
    # The centre of an even number of elements lies between two of them.
    is_lower = node.text("nearest_mode") in ("floor", "round_prefer_floor")
    return WholeStep(1, parts, (parts - is_lower) // 2)
