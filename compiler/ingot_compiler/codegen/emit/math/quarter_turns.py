"""An angle as a number of quarter turns and a rest.

In: ``Number`` in f64. Out: the number of the quadrant (i64), and the rest in [-pi/4, pi/4] as high
+ low. Not done here: sine and cosine of the rest (``trigonometric``).

In three steps up to 2**20, of f32 in two; for larger angles one long product with the bits of 2/pi
(Payne and Hanek), in a block that runs rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.emit.control import values_if
from ingot_compiler.codegen.emit.lanes import all_lanes
from ingot_compiler.codegen.emit.math.exp import MAGIC_F64, MAGIC_F64_BITS
from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.lowering.constants.fdlibm import HALF_PI_PARTS, SMALL_ANGLE_MAX, TWO_OVER_PI

_HALF_PI_REST = 8.47842766036889956997e-32
_HALF_PI_OTHERS = 6.077100506506192e-11  # all of pi/2 behind the first part
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# The first 1216 bits of 2/pi behind the binary point, in 64-bit words, after one word of zeros.
_WORDS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
_WORD_BITS = 64
_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023

Reduced = tuple[Number, Number, Number]  # quadrant, high, low


def in_quarter_turns(x: Number) -> Reduced:
    """Split a finite angle; what infinities and NaN give is NaN."""
    quadrant, high, low = _exactly_if_large(x, _reduce_small(x), _reduce_large)
    return quadrant, high, low


def f32_in_quarter_turns(x: Number) -> tuple[Number, Number]:
    """Split a finite angle of f32 numbers, widened: the number of the quadrant, and the rest in one
    part, off by 2**-36 of it at most."""
    quadrant, rest = _exactly_if_large(x, _reduce_single(x), _reduce_large_single)
    return quadrant, rest


def _exactly_if_large(
    x: Number, small: Sequence[Number], exactly: Callable[[Number], Sequence[Number]]
) -> tuple[Number, ...]:
    """What was made of small angles, and of large ones where a lane has one."""
    w, size = x.writer, x.abs()
    large = (size > SMALL_ANGLE_MAX) & (size < float("inf"))

    def exact() -> Operands:
        pairs = zip(exactly(x), small, strict=True)
        return tuple(large.choose(new, old).operand for new, old in pairs)

    operands = values_if(w, large.any_lane(), tuple(each.operand for each in small), exact)
    return tuple(Number(w, operand) for operand in operands)


def negated_if(x: Number, condition: Number) -> Number:
    """-x where the condition holds."""
    return condition.choose(-x, x)


def _reduce_small(x: Number) -> Reduced:
    """Subtract the multiple of pi/2 part by part, keeping what each subtraction rounds off."""
    shifted = x * TWO_OVER_PI + MAGIC_F64
    n = shifted - MAGIC_F64
    first, second, third = HALF_PI_PARTS
    # Exact: the product has 53 bits, the difference is smaller than either.
    r = x - n * first
    total, error = _two_sum(r, -(n * second))
    total, more = _two_sum(total, -(n * third))
    low = error + more - n * _HALF_PI_REST
    high, low = _two_sum(total, low)
    return shifted.bits() - MAGIC_F64_BITS, high, low


def _reduce_single(x: Number) -> tuple[Number, Number]:
    """Subtract the multiple of pi/2 in two parts: an f32 number up to 2**20 is 2**-31 of a turn or
    more away from it, far more than is lost."""
    shifted = x * TWO_OVER_PI + MAGIC_F64
    n = shifted - MAGIC_F64
    rest = (-n).fma(_HALF_PI_OTHERS, (-n).fma(HALF_PI_PARTS[0], x))
    return shifted.bits() - MAGIC_F64_BITS, rest


def _reduce_large_single(x: Number) -> tuple[Number, Number]:
    quadrant, high, low = _reduce_large(x)
    return quadrant, high + low


def _two_sum(left: Number, right: Number) -> tuple[Number, Number]:
    """The rounded sum and its rounding error."""
    total = left + right
    part = total - left
    return total, (left - (total - part)) + (right - part)


def _reduce_large(x: Number) -> Reduced:
    """Multiply the mantissa with the 192 bits of 2/pi that decide the quadrant and 100 bits of the
    rest."""
    w, bits = x.writer, x.bits()
    exponent = (bits.shift_logical(_MANTISSA_BITS) & 0x7FF) - (_EXPONENT_BIAS + _MANTISSA_BITS)
    mantissa = (bits & ((1 << _MANTISSA_BITS) - 1)) | (1 << _MANTISSA_BITS)
    window = _window(exponent)
    # (w0*2^128 + w1*2^64 + w2) * mantissa, modulo 2^192, in units of 2^-190 quarter turns.
    middle_low, middle_high = _wide_product(window[1], mantissa)
    _, lowest_high = _wide_product(window[2], mantissa)
    middle = middle_low + lowest_high
    carry = Number(w, w.convert("zext", middle.compare("ult", middle_low).operand, "i64"))
    top = window[0] * mantissa + middle_high + carry
    # Round to the nearest quarter turn: the rest is signed.
    quadrant = (top + (1 << 61)).shift_logical(62)
    rest = top - (quadrant << 62)
    return _signed_parts(x, quadrant, rest, middle)


def _window(exponent: Number) -> list[Number]:
    """The three words of 2/pi that matter for a mantissa times 2**exponent."""
    # Words before the window only add multiples of 4 to the quadrant; the table starts with a word
    # of zeros.
    at = exponent + (_WORD_BITS - 2)
    valid = (at >= 0) & (exponent < 1024)
    at = valid.choose(at, at.constant(0))
    index, shift = at.shift_logical(6), at & (_WORD_BITS - 1)
    words = [_table(index.writer, index + number) for number in range(4)]
    return [words[number].intrinsic("fshl", words[number + 1], shift) for number in range(3)]


def _signed_parts(x: Number, quadrant: Number, rest: Number, middle: Number) -> Reduced:
    """The rest (top word, next word; in units of 2**-62) times pi/2 as high + low, with the sign of
    x."""
    high, low = _float_parts(rest, middle)
    # high * pi/2 in full: a product of halves, as in Dekker's.
    total, error = _two_product(high, _HALF_PI)
    error = error + (low * _HALF_PI + high * _HALF_PI_LOW)
    total, error = _two_sum(total, error)
    negative = x < 0
    return (
        negative.choose(-quadrant, quadrant),
        negated_if(total, negative),
        negated_if(error, negative),
    )


def _float_parts(rest: Number, middle: Number) -> tuple[Number, Number]:
    """Two words as high + low."""
    w = rest.writer
    # Exact pieces of 32 bits; near a multiple of pi/2 the first ones cancel.
    pieces = (
        (_to_double(w, rest >> 32, "sitofp"), 2.0**-30),
        (_to_double(w, rest & 0xFFFFFFFF, "uitofp"), 2.0**-62),
        (_to_double(w, middle.shift_logical(32), "uitofp"), 2.0**-94),
        (_to_double(w, middle & 0xFFFFFFFF, "uitofp"), 2.0**-126),
    )
    high = low = pieces[0][0].constant(0.0)
    for piece, unit in pieces:
        high, error = _two_sum(high, piece * unit)
        low = low + error
    return _two_sum(high, low)


def _two_product(left: Number, right: float) -> tuple[Number, Number]:
    """The rounded product and its rounding error (Dekker)."""
    product = left * right
    split = 134217729.0 * right
    right_high = split - (split - right)
    right_low = right - right_high
    left_high = (left.bits() & ~0x7FFFFFF).as_float()
    left_low = left - left_high
    error = (
        (left_high * right_high - product) + left_high * right_low + left_low * right_high
    ) + left_low * right_low
    return product, error


def _to_double(w: Writer, value: Number, opcode: str) -> Number:
    return Number(w, w.convert(opcode, value.operand, "double"))


def _wide_product(left: Number, right: Number) -> tuple[Number, Number]:
    """Low and high 64 bits of an unsigned product, from 32-bit halves."""
    mask = 0xFFFFFFFF
    left_low, left_high = left & mask, left.shift_logical(32)
    right_low, right_high = right & mask, right.shift_logical(32)
    low = left_low * right_low
    cross = left_high * right_low + low.shift_logical(32)
    other = left_low * right_high + (cross & mask)
    return left * right, left_high * right_high + cross.shift_logical(32) + other.shift_logical(32)


def _table(w: Writer, index: Number) -> Number:
    base = w.array("two_over_pi", "i64", [_signed(word) for word in _WORDS])
    pointers = w.offset(base, index.operand, "i64")
    if not index.operand.lanes:
        return Number(w, w.load(pointers, "i64"))
    return Number(w, w.gather(pointers, all_lanes(index.operand.lanes), "i64"))


def _signed(word: int) -> int:
    return word - (1 << _WORD_BITS) if word >> (_WORD_BITS - 1) else word
