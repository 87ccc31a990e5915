"""The coordinate of an index of a resampling's result along one axis of its operand, by the modes
of ONNX Resize-19.

In: a resampling, an index of its result. Out: the coordinate, in f64. Not done here: which elements
lie there (``resize_axis``).

Twice a coordinate is a quotient of integers, rounded once: below 2^53, it is whole where the exact
one is. A factor that a run gives was rounded to f32, for which any fraction may have been meant: a
quotient that is whole for one of these is taken for whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.lowering.kinds.resize_scope import ResizeScope, apply, number
from ingot_compiler.lowering.loops.loop_values import FromIndex, Value
from ingot_runtime.lazy_dataclass import dataclass

# A rounded factor is off by 2^-24 of itself; a length that is no less than 2, less 1, by twice as
# much.
_ROUNDED = 2.0**-23


@dataclass(frozen=True, slots=True)
class ResizedIndex:
    """An index of the result along an axis, and what its coordinate is made from."""

    scope: ResizeScope
    position: int
    place: Dim

    @property
    def index(self) -> Value:
        """The index."""
        return FromIndex(self.place, "f64")

    @property
    def twice(self) -> Value:
        """Two times the index."""
        return FromIndex(dim_mul(self.place, 2), "f64")

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
    def factor(self) -> tuple[Value, Value]:
        """The factor, as a numerator and a denominator."""
        return self.scope.factor(self.position)

    @property
    def length(self) -> tuple[Value, Value]:
        """The size of the result before it was rounded down, as a numerator and a denominator."""
        scope = self.scope
        if not scope.vectors and not scope.given_scale(self.position):
            return self.new, number(1)
        up, down = self.factor
        return apply("mul", up, self.size), down

    def divided(self, value: Value) -> Value:
        """A whole number of halves divided by the factor."""
        up, down = self.factor
        return self.quotient(apply("mul", value, down), up)

    def quotient(self, above: Value, below: Value) -> Value:
        """The quotient, whole where the one that is meant is."""
        found = apply("div", above, below)
        if not self.scope.vectors:
            return found
        found = self.scope.elements.let(found, "f64")
        whole = self.scope.elements.let(apply("floor", apply("add", found, number(0.5))), "f64")
        apart = apply("abs", apply("sub", found, whole))
        error = apply("mul", apply("abs", found), number(_ROUNDED))
        return apply("select", apply("less_equal", apart, error), whole, found)


def coordinate(place: ResizedIndex) -> Value:
    """Where the place lies in x."""
    return _COORDINATES[place.scope.node.text("coordinates")](place)


def _half(value: Value) -> Value:
    return apply("mul", value, number(0.5))


def _positive(steps: Value) -> Value:
    """Steps between elements; of the first one alone, any number."""
    return apply("max", steps, number(1e-300))


def _centre(place: ResizedIndex) -> Value:
    """Twice the middle of the element."""
    return apply("add", place.twice, number(1))


def _half_pixel(place: ResizedIndex) -> Value:
    return _half(apply("sub", place.divided(_centre(place)), number(1)))


def _pytorch_half_pixel(place: ResizedIndex) -> Value:
    is_single = apply("equal", place.new, number(1))
    return apply("select", is_single, number(0), _half_pixel(place))


def _half_pixel_symmetric(place: ResizedIndex) -> Value:
    from_middle = place.divided(apply("sub", _centre(place), place.new))
    return _half(apply("add", from_middle, place.last))


def _asymmetric(place: ResizedIndex) -> Value:
    return _half(place.divided(place.twice))


def _align_corners(place: ResizedIndex) -> Value:
    above, below = place.length
    along = apply("mul", place.twice, apply("mul", place.last, below))
    return _half(place.quotient(along, _positive(apply("sub", above, below))))


def _crop(place: ResizedIndex) -> Value:
    start, end = place.scope.region(place.position)
    last, length = place.last, place.quotient(*place.length)
    middle = apply("mul", _half(apply("add", start, end)), last)
    reach = apply("mul", apply("mul", place.index, apply("sub", end, start)), last)
    along = apply("div", reach, _positive(apply("sub", length, number(1))))
    several = apply("add", along, apply("mul", start, last))
    return apply("select", apply("equal", length, number(1)), middle, several)


_COORDINATES: Mapping[str, Callable[[ResizedIndex], Value]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _crop,
}
