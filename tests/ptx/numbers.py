"""What instructions of PTX compute, number by number, on arrays of one number per thread.

In: operands as arrays of the instruction's type. Out: arrays. Not done here: registers
(``grid``), memory, what threads tell each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.ptx.ptx_text import PtxError

Array = npt.NDArray[Any]

TYPES: dict[str, Any] = {
    "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "pred": np.bool_,
}  # fmt: skip
_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def seen_as(bits: Array, kind: Any) -> Array:
    """The low bits of registers as numbers of a type."""
    wanted = np.dtype(kind)
    if bits.dtype == wanted:
        return bits
    if wanted == np.bool_ or bits.dtype == np.bool_:
        return bits.astype(wanted)
    if bits.dtype.itemsize > wanted.itemsize:
        bits = bits.astype(f"u{wanted.itemsize}")
    if bits.dtype.itemsize < wanted.itemsize:
        raise PtxError(f"a register of {8 * bits.dtype.itemsize} bits as {wanted}")
    return bits.view(wanted)


def as_bits(values: Array, kind: Any) -> Array:
    """Numbers as a register holds them: integers get the bits that they lack."""
    if values.dtype == kind:
        return values
    if kind == np.bool_ or values.dtype == np.bool_:
        raise PtxError(f"a register of type {kind} cannot hold {values.dtype}")
    whole = values.view(f"u{values.dtype.itemsize}") if values.dtype.kind == "f" else values
    return whole.astype(kind)


def wide_type(kind: Any) -> Any:
    """Integers of twice the bits."""
    return np.dtype(f"{np.dtype(kind).kind}{2 * np.dtype(kind).itemsize}")


def compute(opcode: Sequence[str], kind: Any, values: Sequence[Array]) -> Array:
    """Return what an instruction gives.

    Raises:
        PtxError: an instruction that there is not.
    """
    with np.errstate(all="ignore"):
        if opcode[0] == "mul" or opcode[0] == "mad":
            return _product(opcode, kind, values)
        if opcode[:2] == ("shf", "l") and "wrap" in opcode:
            return _funnel(*values)
        if opcode[0] in _PLAIN:
            return _PLAIN[opcode[0]](*values)
        is_float = np.issubdtype(kind, np.floating)
        found = (_FLOATS if is_float else _INTEGERS).get(opcode[0])
        if found is None:
            raise PtxError(f"no instruction {'.'.join(opcode)}")
        return found(*values)


def compare(opcode: Sequence[str], left: Array, right: Array) -> Array:
    """``setp``: ordered comparisons, those that hold for NaN too, and ``num``, ``nan``."""
    name = opcode[1]
    with np.errstate(all="ignore"):
        unordered: Array = (left != left) | (right != right)
        answer = unordered
        if name == "num":
            answer = ~unordered
        elif name in _COMPARISONS:
            answer = _COMPARISONS[name](left, right) & ~unordered
        elif name != "nan":
            answer = _COMPARISONS[name[:-1]](left, right) | unordered
    return answer


def convert(opcode: Sequence[str], values: Array, target: Any) -> Array:
    """``cvt``; numbers that do not fit an integer become the nearest, NaN 0."""
    with np.errstate(all="ignore"):
        is_float = np.issubdtype(values.dtype, np.floating)
        rounding = next((_ROUNDINGS[part] for part in opcode if part in _ROUNDINGS), None)
        if is_float and rounding:
            values = rounding(values)
        if is_float and np.issubdtype(target, np.integer):
            return _to_integer(values, target)
        if "sat" in opcode:
            raise PtxError(f"no instruction {'.'.join(opcode)}")
        if "rz" in opcode[1:] or "rm" in opcode[1:] or "rp" in opcode[1:]:
            raise PtxError(f"no instruction {'.'.join(opcode)}")
        return values.astype(target)


def _to_integer(values: Array, target: Any) -> Array:
    info = np.iinfo(target)
    low, high = values.dtype.type(info.min), values.dtype.type(info.max)
    clipped = np.where((values > low) & (values < high), values, 0).astype(target)
    clipped[values <= low] = info.min
    clipped[values >= high] = info.max
    return clipped


def _product(opcode: Sequence[str], kind: Any, values: Sequence[Array]) -> Array:
    left, right, *addend = values
    if "wide" in opcode:
        wide = wide_type(kind)
        made = left.astype(wide) * right.astype(wide)
    elif "hi" in opcode:
        made = _high(left, right)
    else:
        made = left * right
    answer: Array = made + addend[0] if addend else made
    return answer


def _high(left: Array, right: Array) -> Array:
    bits = 8 * left.dtype.itemsize
    pairs = zip(
        *(np.atleast_1d(each).tolist() for each in np.broadcast_arrays(left, right)), strict=True
    )
    mask = (1 << bits) - 1
    whole = [(a * b >> bits) & mask for a, b in pairs]
    return np.array(whole, f"u{bits // 8}").view(left.dtype)


def _fma(left: Array, right: Array, addend: Array) -> Array:
    wide: Any = np.float64 if left.dtype == np.float32 else np.longdouble
    answer: Array = (left.astype(wide) * right.astype(wide) + addend.astype(wide)).astype(
        left.dtype
    )
    return answer


def _divide(left: Array, right: Array) -> Array:
    """Of integers, towards 0; by 0 all bits."""
    zero = right == 0
    safe = np.where(zero, right.dtype.type(1), right)
    made = left // safe
    rest = left - made * safe
    made = made + ((rest != 0) & ((left < 0) != (safe < 0))).astype(left.dtype)
    every_bit: Array = np.invert(np.zeros_like(safe))
    answer: Array = np.where(zero, every_bit, made)
    return answer


def _remainder(left: Array, right: Array) -> Array:
    return np.where(right == 0, left, left - _divide(left, right) * right)


def _shift(left: Array, by: Array, *, is_left: bool) -> Array:
    """Shifts by more than all bits leave none, or the sign."""
    bits = 8 * left.dtype.itemsize
    count = np.minimum(by, bits - 1).astype(left.dtype)
    made = np.left_shift(left, count) if is_left else np.right_shift(left, count)
    is_signed = left.dtype.kind == "i"
    rest = made if is_signed and not is_left else left.dtype.type(0)
    answer: Array = np.where(by >= bits, rest, made)
    return answer


def _funnel(low: Array, high: Array, by: Array) -> Array:
    """``shf.l.wrap``: the upper half of two numbers beside each other, shifted left."""
    wide = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    answer: Array = (wide << (by & np.uint32(31)).astype(np.uint64) >> np.uint64(32)).astype(
        np.uint32
    )
    return answer


def _field(value: Array, start: Array, length: Array) -> Array:
    """``bfe``: the highest bit of a field of a signed number is its sign."""
    bits = 8 * value.dtype.itemsize
    wide = value >> np.minimum(start, bits - 1).astype(value.dtype)
    if value.dtype.kind == "i":
        above = np.clip(bits - length.astype(np.int64), 0, bits - 1).astype(value.dtype)
        wide = np.right_shift(np.left_shift(wide, above), above)
        found = np.where(length == 0, value.dtype.type(0), wide)
    else:
        mask = (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1)
        found = np.where(length >= 64, wide, wide & mask.astype(value.dtype))
    answer: Array = found
    return answer


def _permuted(low: Array, high: Array, selector: Array) -> Array:
    """``prmt``: four bytes out of eight, each as it is, or its sign in all bits."""
    eight = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    made = np.zeros(np.broadcast(low, high, selector).shape, np.uint32)
    for number in range(4):
        nibble = selector >> np.uint32(4 * number) & np.uint32(15)
        byte = (eight >> (np.uint64(8) * (nibble & np.uint32(7)).astype(np.uint64))) & np.uint64(
            255
        )
        sign = np.where(byte >> np.uint64(7) != 0, np.uint32(255), np.uint32(0))
        found = np.where(nibble & np.uint32(8), sign, byte.astype(np.uint32))
        made |= found << np.uint32(8 * number)
    return made


def _choose(left: Array, right: Array, condition: Array) -> Array:
    return np.where(condition, left, right)


def _popcount(value: Array) -> Array:
    return np.bitwise_count(value).astype(np.uint32)


def _leading_zeros(value: Array) -> Array:
    bits = 8 * value.dtype.itemsize
    return np.array([bits - int(v).bit_length() for v in np.atleast_1d(value)], np.uint32)


def _with_sign(sign: Array, size: Array) -> Array:
    return np.copysign(size, sign)


_PLAIN: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "neg": np.negative,
    "abs": np.abs,
    "selp": _choose,
    "fma": _fma,
    "copysign": _with_sign,
}
_FLOATS: dict[str, Callable[..., Array]] = {
    "div": np.divide,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "min": np.fmin,
    "max": np.fmax,
}
_INTEGERS: dict[str, Callable[..., Array]] = {
    "div": _divide,
    "rem": _remainder,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
    "shl": partial(_shift, is_left=True),
    "shr": partial(_shift, is_left=False),
    "bfe": _field,
    "popc": _popcount,
    "prmt": _permuted,
    "clz": _leading_zeros,
}
