"""Where an index of a resampling's result lies along one axis of its operand, by the modes of ONNX
Resize-19.

In: a resampling, an index of its result. Out: the coordinate, in f64. Not done here: which elements
lie there (``resize_axis``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.lowering.kinds.resize_scope import ResizeScope, apply, number
from ingot_compiler.lowering.loops import FromIndex, Value
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ResizedIndex:
    """An index of the result along an axis, and what its coordinate is made from."""

    scope: ResizeScope
    position: int
    index: Value

    @property
    def size(self) -> Value:
        """The size of x."""
        return FromIndex(self.scope.size(self.position), "f64")

    @property
    def last(self) -> Value:
        """The last index of x."""
        return apply("sub", self.size, number(1))

    @property
    def new(self) -> Value:
        """The size of the result."""
        return FromIndex(self.scope.new_size(self.position), "f64")

    @property
    def scale(self) -> Value:
        """The factor."""
        return self.scope.scale(self.position)

    @property
    def length(self) -> Value:
        """The size of the result before it was rounded down."""
        from_sizes = not self.scope.vectors and not self.scope.given_scale(self.position)
        return self.new if from_sizes else apply("mul", self.scale, self.size)

    @property
    def step(self) -> Value:
        """The steps from the first to the last index of the result."""
        return apply("max", apply("sub", self.length, number(1)), number(1e-300))

    def unless_single(self, value: Value, otherwise: Value) -> Value:
        """``value``, but ``otherwise`` where the result has a single element."""
        return apply("select", apply("equal", self.length, number(1)), otherwise, value)


def coordinate(place: ResizedIndex) -> Value:
    """Where the place lies in x."""
    return _COORDINATES[place.scope.node.text("coordinates")](place)


def _half_pixel(place: ResizedIndex) -> Value:
    centre = apply("add", place.index, number(0.5))
    return apply("sub", apply("div", centre, place.scale), number(0.5))


def _pytorch_half_pixel(place: ResizedIndex) -> Value:
    is_single = apply("equal", place.new, number(1))
    return apply("select", is_single, number(0), _half_pixel(place))


def _half_pixel_symmetric(place: ResizedIndex) -> Value:
    rest = apply("sub", number(1), apply("div", place.new, place.length))
    half = apply("mul", place.size, number(0.5))
    return apply("add", apply("mul", half, rest), _half_pixel(place))


def _asymmetric(place: ResizedIndex) -> Value:
    return apply("div", place.index, place.scale)


def _align_corners(place: ResizedIndex) -> Value:
    along = apply("div", apply("mul", place.index, place.last), place.step)
    return place.unless_single(along, number(0))


def _crop(place: ResizedIndex) -> Value:
    start, end = place.scope.region(place.position)
    last = place.last
    middle = apply("mul", apply("mul", number(0.5), apply("add", start, end)), last)
    reach = apply("mul", apply("mul", place.index, apply("sub", end, start)), last)
    along = apply("div", reach, place.step)
    return place.unless_single(apply("add", along, apply("mul", start, last)), middle)


_COORDINATES: Mapping[str, Callable[[ResizedIndex], Value]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _crop,
}
