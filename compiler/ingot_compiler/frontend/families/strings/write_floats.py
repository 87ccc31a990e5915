"""Floats and truths written as strings (ONNX Cast-25), as numpy writes them: the fewest digits that
tell a float from its neighbours; ``inf``, ``nan``; ``True``, ``False``.

In: a context, floats or truths. Out: strings in their shape. Not done here: the digits
(``shortest_digits``).

Small and large floats have an exponent (1e-05): those below 1e-4, and from a bound on that their type
has. Each string has a row of bytes from its begin on.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    iota,
    reduce,
    reshape,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.pool import written, written_strings
from ingot_compiler.frontend.families.strings.shortest_digits import shortest
from ingot_compiler.ir.dims import dim_mul, dim_product
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

PLAIN_BELOW: dict[DType, float] = {"f16": 1e3, "bf16": 1e3, "f32": 1e6, "f64": 1e16}
_PLAIN_FROM = 1e-4
_WIDTH = 24  # of -1.2345678901234567e-300
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class _Text:
    """What decides the bytes of each row, i64[count, 1]. ``digits``: u64; ``count``: of them that are
    written; ``exponent``: of the first; ``plain``: whether none is written."""

    digits: int
    places: int
    count: int
    exponent: int
    plain: int


def written_truths(context: OpContext, x: int) -> Strings:
    """The strings of booleans."""
    words = written_strings(context, ["False", "True"], (2,))
    spans = context.add("gather", words.spans, cast(context, x, "i64"), axis=0)
    return Strings(spans, words.pool)


def written_floats(context: OpContext, x: int) -> Strings:
    """The strings of floats."""
    shape = context.shape_of(x)
    count = dim_product(shape)
    flat = reshape(context, x, (count, 1))
    wide = cast(context, flat, "f64")
    text = _text_of(context, flat, wide)
    is_nan = context.add("isnan", wide)
    is_word = context.add(
        "logical_or", is_nan, context.add("isinf", wide, negative=True, positive=True)
    )
    sign = context.add("shift_right", context.add("bit_cast", wide, dtype="u64"), _u64(context, 63))
    minus = context.add("bit_cast", sign, dtype="i64")
    minus = context.add("select", is_nan, context.scalar("i64", 0), minus)
    place = context.add("sub", iota(context, _WIDTH), minus)
    words = written(context, "u8", list(b"infnan"))
    first = binary_scalar(context, "mul", cast(context, is_nan, "i64"), 3)
    letter = context.add("add", _limited(context, place, 0, 2), first)
    word = context.add("gather", words, letter, axis=0)
    bytes_, length = _number(context, text, place)
    bytes_ = context.add("select", is_word, word, bytes_)
    is_sign = context.add("less", place, context.scalar("i64", 0))
    bytes_ = context.add("select", is_sign, context.scalar("u8", ord("-")), bytes_)
    length = context.add("select", is_word, context.scalar("i64", 3), length)
    begin = reshape(context, iota(context, count), (count, 1))
    begin = binary_scalar(context, "mul", begin, _WIDTH)
    end = context.add("add", begin, context.add("add", length, minus))
    pool = reshape(context, bytes_, (dim_mul(count, _WIDTH),))
    return Strings(reshape(context, concat(context, [begin, end], 1), (*shape, 2)), pool)


def _text_of(context: OpContext, x: int, wide: int) -> _Text:
    """How finite floats are written; ``wide``: the same ones as f64."""
    found = shortest(context, x)
    powers = written(context, "u64", [10**place for place in range(1, _DIGITS)])
    longer = context.add("less_equal", powers, found.digits)
    digits = binary_scalar(context, "add", _counted(context, longer), 1)
    whole = context.add("mul", context.add("div", found.digits, powers), powers)
    zeros = _counted(context, context.add("equal", whole, found.digits))
    count = binary_scalar(context, "max", context.add("sub", digits, zeros), 1)
    size = context.add("abs", wide)
    bound = PLAIN_BELOW[context.dtype_of(x)]
    large = context.add("less_equal", context.scalar("f64", bound), size)
    small = binary_scalar(context, "less", size, _PLAIN_FROM)
    is_zero = binary_scalar(context, "equal", size, 0.0)
    exponent = binary_scalar(context, "add", context.add("add", found.exponent, digits), -1)
    exponent = context.add("select", is_zero, context.scalar("i64", 0), exponent)
    small = context.add("logical_and", small, context.add("logical_not", is_zero))
    plain = context.add("logical_not", context.add("logical_or", large, small))
    return _Text(found.digits, digits, count, exponent, plain)


def _number(context: OpContext, text: _Text, place: int) -> tuple[int, int]:
    """u8[count, width], i64[count, 1]: the bytes at places from 0 on, and how many there are."""
    add, zero = context.add, context.scalar("i64", 0)
    shown = add("select", text.plain, text.exponent, zero)
    point = binary_scalar(context, "add", binary_scalar(context, "max", shown, 0), 1)
    behind = add("less", point, place)
    index = add("sub", place, cast(context, behind, "i64"))
    index = add("add", index, binary_scalar(context, "min", shown, 0))
    bytes_ = _digit(context, text, index)
    bytes_ = _where(context, add("equal", place, point), ord("."), bytes_)
    one_behind = binary_scalar(context, "add", point, 1)
    plain_digits = add("sub", text.count, binary_scalar(context, "min", shown, 0))
    plain_length = binary_scalar(context, "add", add("max", plain_digits, one_behind), 1)
    is_one = binary_scalar(context, "equal", text.count, 1)
    end = binary_scalar(context, "add", text.count, 1)
    end = add("select", is_one, text.count, end)
    tail = add("sub", place, end)
    exponent = _exponent(context, text.exponent, tail)
    in_tail = add("logical_and", add("logical_not", text.plain), add("less_equal", zero, tail))
    bytes_ = add("select", in_tail, exponent, bytes_)
    long = add("less_equal", context.scalar("i64", 100), add("abs", text.exponent))
    length = binary_scalar(context, "add", add("add", end, cast(context, long, "i64")), 4)
    return bytes_, add("select", text.plain, plain_length, length)


def _exponent(context: OpContext, exponent: int, tail: int) -> int:
    """u8: ``e``, a sign, and two or three digits, at places from 0 on."""
    size = context.add("abs", exponent)
    long = context.add("less_equal", context.scalar("i64", 100), size)
    last = binary_scalar(context, "add", cast(context, long, "i64"), 3)
    powers = written(context, "i64", [1, 10, 100])
    power = context.add(
        "gather", powers, _limited(context, context.add("sub", last, tail), 0, 2), axis=0
    )
    bytes_ = _as_digit(context, context.add("div", size, power))
    below = binary_scalar(context, "less", exponent, 0)
    sign = _where(context, below, ord("-"), context.scalar("u8", ord("+")))
    is_sign = binary_scalar(context, "equal", tail, 1)
    bytes_ = context.add("select", is_sign, sign, bytes_)
    return _where(context, binary_scalar(context, "equal", tail, 0), ord("e"), bytes_)


def _digit(context: OpContext, text: _Text, index: int) -> int:
    """u8: the digit at an index from the first one on, ``0`` outside of all."""
    rest = context.add("sub", binary_scalar(context, "add", text.places, -1), index)
    powers = written(context, "u64", [10**place for place in range(_DIGITS)])
    power = context.add("gather", powers, _limited(context, rest, 0, _DIGITS - 1), axis=0)
    digit = _as_digit(context, context.add("div", text.digits, power))
    inside = context.add(
        "logical_and",
        context.add("less_equal", context.scalar("i64", 0), index),
        context.add("less_equal", context.scalar("i64", 0), rest),
    )
    return context.add("select", inside, digit, context.scalar("u8", ord("0")))


def _as_digit(context: OpContext, number: int) -> int:
    """u8: the last digit of integers as a character."""
    tens = binary_scalar(context, "mul", binary_scalar(context, "div", number, 10), 10)
    last = cast(context, context.add("sub", number, tens), "u8")
    return binary_scalar(context, "add", last, ord("0"))


def _where(context: OpContext, flags: int, letter: int, other: int) -> int:
    return context.add("select", flags, context.scalar("u8", letter), other)


def _counted(context: OpContext, flags: int) -> int:
    """i64[count, 1]: how many flags of a row are set."""
    return reduce(context, cast(context, flags, "i64"), "sum", (1,), keepdims=True)


def _limited(context: OpContext, x: int, low: int, high: int) -> int:
    return binary_scalar(context, "min", binary_scalar(context, "max", x, low), high)


def _u64(context: OpContext, number: int) -> int:
    return context.scalar("u64", number)
