"""Strings read as numbers (ONNX Cast-25): plain and scientific decimals, for floats INF and NAN
in any case, and for truths TRUE and FALSE.

In: a context, strings. Out: f64, i64 or bool in their shape; a string that is no number is refused when
it comes. Not done here: blanks around a number (refused), numbers as strings (``write_numbers``,
``write_floats``).

The first 19 digits that count are an integer, which a power of ten multiplies: a sum of two f64
whose product, with what it lost, is rounded once. Up to 19 digits, and where the power is between
1e-290 and 1e290, the result is the nearest f64; beyond, a second power of ten rounds once more.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce as fold
from itertools import product as combinations
from math import inf

import numpy as np

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    iota,
    reduce,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import (
    lengths_of,
    longest,
    rows_of,
    shape_of_strings,
)
from ingot_compiler.frontend.families.strings.lookup import places_among
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.dims import Dim, dim_max
from ingot_runtime.lazy_dataclass import dataclass

_DIGITS_MAX = 19  # of floats: 10^19 - 1 is a u64
_WHOLE_DIGITS_MAX = 20  # of integers, for the greatest u64 has so many
_POWER_DIGITS = 6  # of an exponent, behind which others are zeros, or make it far too large
_POWER_MOST = 500  # of an exponent: beyond the range of f64, but for more digits than 100
_POWER_MAX = (
    290  # of a table: 2^27 times such a power is finite, and its rest is no subnormal number
)
_SPLIT = 134217729.0  # 2^27 + 1
_ENDLESS = 24  # words for infinity, before those for NaN
_SIGNED = [
    sign + "".join(letters)
    for cases in (("iI", "nN", "fF"), ("nN", "aA", "nN"))
    for sign in ("", "+", "-")
    for letters in combinations(*cases)
]
_TRUE = 16  # words for true, before those for false
_TRUTHS = [
    "".join(letters)
    for word in ("true", "false")
    for letters in combinations(*(letter + letter.upper() for letter in word))
]


@dataclass(frozen=True, slots=True)
class _Decimals:
    """The decimal number in each string [count]: ``digits``, u64, times ten to the ``exponent``,
    i64; whether it is below zero, and a number at all."""

    digits: int
    exponent: int
    is_negative: int
    is_number: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """Bytes [count, width] and questions about them."""

    context: OpContext
    bytes: int
    places: int
    width: Dim

    def is_any(self, text: str) -> int:
        """Whether a byte is one of some characters."""
        codes = [self.context.scalar("i32", ord(letter)) for letter in text]
        return self.one_of(*(self.context.add("equal", self.bytes, code) for code in codes))

    def no(self, flags: int) -> int:
        """Whether a flag is not set."""
        return self.context.add("logical_not", flags)

    def any(self, flags: int) -> int:
        """[count, 1]: whether one of a row is set."""
        return self.context.add("less", self.context.scalar("i64", 0), self.count(flags))

    def all_of(self, *flags: int) -> int:
        """Whether all of several are true."""
        return fold(lambda left, right: self.context.add("logical_and", left, right), flags)

    def one_of(self, *flags: int) -> int:
        """Whether one of several is true."""
        return fold(lambda left, right: self.context.add("logical_or", left, right), flags)

    def first(self, flags: int) -> int:
        """[count, 1]: the first place where a flag is set, the width where none is."""
        end = size_scalar(self.context, self.width)
        nowhere = self.context.add("select", flags, self.places, end)
        return reduce(self.context, nowhere, "min", (1,), keepdims=True)

    def at(self, place: int, by: int = 0) -> int:
        """Whether a byte lies so far behind a place [count, 1]."""
        wanted = binary_scalar(self.context, "add", place, by) if by else place
        return self.context.add("equal", self.places, wanted)

    def count(self, flags: int) -> int:
        """[count, 1]: how many flags are set."""
        numbers = cast(self.context, flags, "i64")
        return reduce(self.context, numbers, "sum", (1,), keepdims=True)

    def running(self, flags: int) -> int:
        """[count, width]: how many flags are set up to each place."""
        numbers = cast(self.context, flags, "i64")
        return self.context.add("cumsum", numbers, axis=1, exclusive=False, reverse=False)

    def whole(self, flags: int, digits: int, order: int, most: int) -> int:
        """u64[count, 1]: the number that the flagged digits are, which have an order from 1 on."""
        last = reduce(self.context, order, "max", (1,), keepdims=True)
        place = _limited(self.context, self.context.add("sub", last, order), 0, most - 1)
        powers = written(self.context, "u64", [10**power for power in range(most)])
        terms = self.context.add(
            "mul",
            cast(self.context, digits, "u64"),
            self.context.add("gather", powers, place, axis=0),
        )
        kept = self.context.add("select", flags, terms, self.context.scalar("u64", 0))
        return reduce(self.context, kept, "sum", (1,), keepdims=True)


def as_f64(context: OpContext, strings: Strings) -> int:
    """The nearest f64 of each string."""
    found, fits = _floats(context, strings)
    found = checked(context, found, fits, "a number in every string")
    return reshape(context, found, shape_of_strings(context, strings))


def as_bool(context: OpContext, strings: Strings) -> int:
    """Whether a number is not zero; ``true`` and ``false`` in any case, which Cast writes."""
    found, fits = _floats(context, strings)
    word = reshape(context, places_among(context, strings, _TRUTHS), context.shape_of(found))
    is_word = context.add("less_equal", context.scalar("i64", 0), word)
    above = context.add("logical_not", binary_scalar(context, "equal", found, 0.0))
    truth = context.add("select", is_word, binary_scalar(context, "less", word, _TRUE), above)
    fits = context.add("logical_or", fits, is_word)
    truth = checked(context, truth, fits, "a number, true or false in every string")
    return reshape(context, truth, shape_of_strings(context, strings))


def _floats(context: OpContext, strings: Strings) -> tuple[int, int]:
    """f64[count]; whether each string is a number."""
    decimals = _decimals(context, strings, _DIGITS_MAX)
    near = _limited(context, decimals.exponent, -_POWER_MAX, _POWER_MAX)
    far = _limited(context, context.add("sub", decimals.exponent, near), -_POWER_MAX, _POWER_MAX)
    found = context.add("mul", _scaled(context, decimals.digits, near), _powers(context, far)[0])
    word = reshape(context, places_among(context, strings, _SIGNED), context.shape_of(found))
    is_word = context.add("less_equal", context.scalar("i64", 0), word)
    endless = binary_scalar(context, "less", word, _ENDLESS)
    infinity, nan = (context.scalar("f64", value) for value in (inf, float("nan")))
    special = context.add("select", endless, infinity, nan)
    found = context.add("select", is_word, special, found)
    found = context.add("select", decimals.is_negative, context.add("neg", found), found)
    return found, context.add("logical_or", decimals.is_number, is_word)


def as_i64(context: OpContext, strings: Strings) -> int:
    """The integer of each string, cut at its point; what has no room in 64 bits wraps."""
    decimals = _decimals(context, strings, _WHOLE_DIGITS_MAX)
    powers = written(context, "u64", [10**power for power in range(_WHOLE_DIGITS_MAX)])
    zero = context.scalar("i64", 0)

    def power(exponent: int) -> int:
        inside = _limited(context, exponent, 0, _WHOLE_DIGITS_MAX - 1)
        return context.add("gather", powers, inside, axis=0)

    up = context.add("mul", decimals.digits, power(decimals.exponent))
    down = context.add("div", decimals.digits, power(context.add("neg", decimals.exponent)))
    found = context.add("select", context.add("less", zero, decimals.exponent), up, down)
    # Of digits behind a point, 20 may have no room, and 19 do as well: what they lose is cut.
    fewer = _decimals(context, strings, _DIGITS_MAX)
    cut = context.add("div", fewer.digits, power(context.add("neg", fewer.exponent)))
    found = context.add("select", context.add("less", decimals.exponent, zero), cut, found)
    tiny = binary_scalar(context, "less", decimals.exponent, 1 - _WHOLE_DIGITS_MAX)
    found = context.add("select", tiny, context.scalar("u64", 0), found)
    whole = context.add("bit_cast", found, dtype="i64")
    whole = context.add("select", decimals.is_negative, context.add("neg", whole), whole)
    whole = checked(context, whole, decimals.is_number, "a number in every string")
    return reshape(context, whole, shape_of_strings(context, strings))


def _decimals(context: OpContext, strings: Strings, most: int) -> _Decimals:
    """The first ``most`` digits that count, and what is known of the rest."""
    width = dim_max(longest(context, lengths_of(context, strings)), 1)
    rows = _Rows(context, rows_of(context, strings, width), iota(context, width), width)
    marks = _Marks.of(rows)
    digit = context.add("sub", rows.bytes, context.scalar("i32", ord("0")))
    above = rows.all_of(marks.early, context.add("less", context.scalar("i32", 0), digit))
    begun = context.add("less", context.scalar("i64", 0), rows.running(above))
    counts = rows.all_of(marks.early, begun)
    order = rows.running(counts)
    fits = binary_scalar(context, "less_equal", order, most)
    kept, beyond = (rows.all_of(counts, flag) for flag in (fits, rows.no(fits)))
    digits = rows.whole(kept, digit, binary_scalar(context, "min", order, most), most)
    left_out = rows.all_of(beyond, context.add("less", rows.places, marks.point))
    fraction = rows.all_of(marks.early, fits, context.add("less", marks.point, rows.places))
    shift = context.add("sub", rows.count(left_out), rows.count(fraction))
    power = rows.whole(marks.late, digit, rows.running(marks.late), _POWER_DIGITS)
    power = _limited(context, cast(context, power, "i64"), 0, _POWER_MOST)
    minus = rows.is_any("-")
    falls = rows.any(rows.all_of(minus, rows.at(marks.letter, 1)))
    power = context.add("select", falls, context.add("neg", power), power)
    found = (
        digits, context.add("add", shift, power), rows.any(rows.all_of(minus, rows.at(marks.start))),
        marks.is_number(rows),
    )  # fmt: skip
    count = context.shape_of(digits)[0]
    return _Decimals(*(reshape(context, each, (count,)) for each in found))


@dataclass(frozen=True, slots=True)
class _Marks:
    """Places [count, 1]: of the begin, of a point before the end, of the letter of the exponent; the
    width where there is none. Digits [count, width]: ``early`` ones before the letter, ``late``
    ones behind it."""

    start: int
    point: int
    letter: int
    is_digit: int
    early: int
    late: int

    @classmethod
    def of(cls, rows: _Rows) -> _Marks:
        """The marks of all rows."""
        context, is_digit = rows.context, rows.is_any("0123456789")
        letter = rows.first(rows.is_any("eE"))
        point = context.add("min", rows.first(rows.is_any(".")), letter)
        early = rows.all_of(is_digit, context.add("less", rows.places, letter))
        late = rows.all_of(is_digit, context.add("less", letter, rows.places))
        start = context.add("sub", letter, letter)
        return cls(start, point, letter, is_digit, early, late)

    def is_number(self, rows: _Rows) -> int:
        """[count, 1]: digits, and nothing else but signs, point and letter where they may stand."""
        sign = rows.all_of(
            rows.is_any("+-"), rows.one_of(rows.at(self.start), rows.at(self.letter, 1))
        )
        point = rows.all_of(rows.is_any("."), rows.at(self.point))
        behind = binary_scalar(rows.context, "less", rows.bytes, 0)
        letter = rows.at(self.letter)
        known = rows.one_of(behind, self.is_digit, sign, point, letter)
        bare = rows.all_of(rows.any(letter), rows.no(rows.any(self.late)))
        return rows.all_of(rows.no(rows.any(rows.no(known))), rows.any(self.early), rows.no(bare))


def _scaled(context: OpContext, digits: int, exponent: int) -> int:
    """u64 digits times ten to an exponent, rounded once."""
    high = cast(context, digits, "f64")
    lost = context.add("sub", digits, cast(context, high, "u64"))
    low = cast(context, context.add("bit_cast", lost, dtype="i64"), "f64")
    power, rest = _powers(context, exponent)
    product = context.add("mul", high, power)
    (a, b), (c, d) = (_halves(context, each) for each in (high, power))
    error = context.add("sub", context.add("mul", a, c), product)
    for pair in ((a, d), (b, c), (b, d)):
        error = context.add("add", error, context.add("mul", *pair))
    for pair in ((high, rest), (low, power)):
        error = context.add("add", error, context.add("mul", *pair))
    return context.add("add", product, error)


def _limited(context: OpContext, x: int, low: int, high: int) -> int:
    """Integers in [low, high]."""
    return binary_scalar(context, "min", binary_scalar(context, "max", x, low), high)


def _halves(context: OpContext, x: int) -> tuple[int, int]:
    """Two f64 of 26 bits each whose sum is ``x`` (Dekker)."""
    wide = binary_scalar(context, "mul", x, _SPLIT)
    high = context.add("sub", wide, context.add("sub", wide, x))
    return high, context.add("sub", x, high)


def _powers(context: OpContext, exponent: int) -> tuple[int, int]:
    """Ten to exponents in [-_POWER_MAX, _POWER_MAX], as a sum of two f64."""
    exact = [Fraction(10) ** power for power in range(-_POWER_MAX, _POWER_MAX + 1)]
    near = [float(power) for power in exact]
    rest = [float(power - Fraction(each)) for power, each in zip(exact, near, strict=True)]
    place = binary_scalar(context, "add", exponent, _POWER_MAX)
    high, low = (
        context.add(
            "gather",
            context.add("bit_cast", written(context, "i64", words), dtype="f64"),
            place,
            axis=0,
        )
        for words in (np.array(values).view(np.int64).tolist() for values in (near, rest))
    )
    return high, low
