"""The fewest decimal digits that tell a float from its neighbours (Giulietti's Schubfach).

In: a context, finite floats. Out: digits and powers of ten. Not done here: their text
(``write_floats``), infinities and NaN (any digits).

A float is c * 2^q. Its own value and the borders half way to its neighbours are scaled by a power of
ten of 128 bits so that whole numbers stand one digit apart; what is cut off stays as one sticky bit,
which suffices to compare. Of the numbers between the borders, one that ends in a zero is taken first.
"""

from __future__ import annotations

from fractions import Fraction

from ingot_compiler.frontend.build.compose import binary_scalar, cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

PRECISIONS: dict[DType, tuple[int, int]] = {
    "f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074),
}  # fmt: skip
"""Bits of a significand, and the least power of two that one is multiplied by."""
_POWERS = range(-292, 325)  # of ten, which the range of f64 asks for
_WORD = 1 << 64
_LOG10_2, _LOG10_SHIFT = 1262611, 22
_LOG10_CLOSER = 524031  # log10(4/3), for a lower neighbour at half the distance
_LOG2_10, _LOG2_SHIFT = 1741647, 19


@dataclass(frozen=True, slots=True)
class Decimals:
    """``digits``, u64, times ten to the ``exponent``, i64; digits may end in zeros."""

    digits: int
    exponent: int


@dataclass(frozen=True, slots=True)
class _Binary:
    """u64 ``c`` times two to the i64 ``q``; ``closer``: the lower neighbour is at half the
    distance."""

    c: int
    q: int
    closer: int


@dataclass(frozen=True, slots=True)
class _Words:
    """Arithmetic on u64 that wraps."""

    context: OpContext

    def with_number(self, op: str, x: int, number: int) -> int:
        """``op(x, number)``, of any u64, which the type of x has."""
        return binary_scalar(self.context, op, x, number)  # type: ignore[arg-type]

    def high(self, x: int, y: int) -> int:
        """The upper 64 bits of a product."""
        add, cut = self.context.add, self.with_number
        (a, b), (c, d) = (
            (cut("shift_right", each, 32), cut("bitwise_and", each, 0xFFFFFFFF)) for each in (x, y)
        )
        first = add("add", add("mul", a, d), cut("shift_right", add("mul", b, d), 32))
        second = add("add", add("mul", b, c), cut("bitwise_and", first, 0xFFFFFFFF))
        carried = add("add", cut("shift_right", first, 32), cut("shift_right", second, 32))
        return add("add", add("mul", a, c), carried)

    def scaled(self, low: int, high: int, x: int) -> int:
        """The upper 64 of 192 bits of a product with (high, low), odd where bits are lost."""
        add = self.context.add
        below = self.high(low, x)
        middle = add("add", add("mul", high, x), below)
        carry = cast(self.context, add("less", middle, below), "u64")
        top = add("add", self.high(high, x), carry)
        lost = add("less", self.context.scalar("u64", 1), middle)
        return add("bitwise_or", top, cast(self.context, lost, "u64"))


def shortest(context: OpContext, x: int) -> Decimals:
    """The nearest of the shortest decimals of finite floats, without their sign."""
    words, binary = _Words(context), _split(context, x)
    add = context.add
    power = add(
        "sub",
        binary_scalar(context, "mul", binary.q, _LOG10_2),
        add(
            "select", binary.closer, context.scalar("i64", _LOG10_CLOSER), context.scalar("i64", 0)
        ),
    )
    power = binary_scalar(context, "shift_right", power, _LOG10_SHIFT)
    shift = binary_scalar(context, "mul", add("neg", power), _LOG2_10)
    shift = add("add", binary_scalar(context, "shift_right", shift, _LOG2_SHIFT), binary.q)
    shift = _unsigned(context, binary_scalar(context, "add", shift, 1))
    low, high = _powers(context, add("neg", power))
    own = words.with_number("mul", binary.c, 4)
    less = add(
        "sub", words.with_number("sub", own, 2), add("neg", cast(context, binary.closer, "u64"))
    )
    parts = (less, own, words.with_number("add", own, 2))
    lower, middle, upper = (
        words.scaled(low, high, add("shift_left", each, shift)) for each in parts
    )
    odd = words.with_number("bitwise_and", binary.c, 1)  # borders belong to even numbers
    digits, more = _chosen(context, add("add", lower, odd), middle, add("sub", upper, odd))
    is_zero = words.with_number("equal", binary.c, 0)
    digits = add("select", is_zero, context.scalar("u64", 0), digits)
    return Decimals(digits, add("add", power, more))


def _chosen(context: OpContext, lower: int, middle: int, upper: int) -> tuple[int, int]:
    """The digits between two borders, all in fourths, and how many zeros they stand for besides."""
    words, add = _Words(context), context.add

    def inside(number: int, step: int) -> tuple[int, int]:
        """Whether a multiple of a step, and the next one, lie between the borders."""
        first = words.with_number("mul", number, step)
        above = words.with_number("add", first, step)
        return add("less_equal", lower, first), add("less_equal", above, upper)

    tens, whole = (words.with_number("div", middle, step) for step in (40, 4))
    (down10, up10), (down, up) = inside(tens, 40), inside(whole, 4)
    half = words.with_number("add", words.with_number("mul", whole, 4), 2)
    is_odd = words.with_number("equal", words.with_number("bitwise_and", whole, 1), 1)
    tie = add("logical_and", add("equal", middle, half), is_odd)
    nearer = add("logical_or", add("less", half, middle), tie)
    near = add("select", add("logical_xor", down, up), up, nearer)
    is_short = add(
        "logical_and",
        add("logical_xor", down10, up10),
        add("less_equal", context.scalar("u64", 10), whole),
    )
    digits = add("select", is_short, tens, whole)
    digits = add("add", digits, cast(context, add("select", is_short, up10, near), "u64"))
    return digits, cast(context, is_short, "i64")


def _split(context: OpContext, x: int) -> _Binary:
    """Significand and exponent of floats."""
    words, (bits, least) = _Words(context), PRECISIONS[context.dtype_of(x)]
    pattern = context.add("bit_cast", cast(context, x, "f64"), dtype="u64")
    field = words.with_number("shift_right", pattern, 52)
    field = words.with_number("bitwise_and", field, 0x7FF)
    fraction = words.with_number("bitwise_and", pattern, (1 << 52) - 1)
    is_normal = context.add("less", context.scalar("u64", 0), field)
    whole = words.with_number("bitwise_or", fraction, 1 << 52)
    fraction = context.add("select", is_normal, whole, fraction)
    own = context.add("bit_cast", words.with_number("max", field, 1), dtype="i64")
    own = binary_scalar(context, "add", own, -1075)
    q = binary_scalar(context, "max", binary_scalar(context, "add", own, 53 - bits), least)
    c = context.add("shift_right", fraction, _unsigned(context, context.add("sub", q, own)))
    first = words.with_number("equal", c, 1 << (bits - 1))
    above = context.add("less", context.scalar("i64", least), q)
    return _Binary(c, q, context.add("logical_and", first, above))


def _unsigned(context: OpContext, x: int) -> int:
    return context.add("bit_cast", x, dtype="u64")


def _powers(context: OpContext, exponent: int) -> tuple[int, int]:
    """The lower and the upper 64 of the first 128 bits of powers of ten, rounded up; exponents of
    infinities and NaN are beyond the table, and limited."""
    numbers = [_power(power) for power in _POWERS]
    place = binary_scalar(context, "add", exponent, -_POWERS[0])
    place = binary_scalar(context, "max", place, 0)
    place = binary_scalar(context, "min", place, len(_POWERS) - 1)
    low, high = (
        context.add("gather", written(context, "u64", words), place, axis=0)
        for words in ([each % _WORD for each in numbers], [each // _WORD for each in numbers])
    )
    return low, high


def _power(power: int) -> int:
    """The least integer that is not below 10^power times a power of two, in [2^127, 2^128)."""
    exact = Fraction(10) ** power
    shift = 127 - ((power * _LOG2_10) >> _LOG2_SHIFT)
    return -int(-(exact * Fraction(2) ** shift) // 1)
