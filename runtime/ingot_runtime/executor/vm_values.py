"""The arithmetic of the vm's registers: i64 that wrap, division that rounds down.

In: numbers, bytes. Out: numbers, bit for bit those of the native `main`. Not done here: registers
and addresses.
"""

import math
import struct

from ..format.dtypes import DTYPE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BITS = 1 << 64
_MAX = (1 << 63) - 1
_MIN = -(1 << 63)
_FORMATS = {
    "f32": "<f", "f64": "<d", "f16": "<e", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
    "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "bool": "<B",
}  # fmt: skip


def wrap(value: int) -> int:
    """Return `value` modulo 2^64 as a signed number."""
    return (value + (1 << 63)) % _BITS - (1 << 63)


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a % b if b else 0


NUMBERS: "dict[str, Callable[[int, int], int]]" = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _floordiv,
    "mod": _mod,
    "min": min,
    "max": max,
    "eq": lambda a, b: int(a == b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
}


def element(data: bytes, dtype: int) -> int:
    """Return one element as i64: floats rounded towards zero and saturated, NaN as 0; u64 wraps."""
    name = DTYPE_NAMES[dtype]
    if name == "bf16":
        data, name = b"\0\0" + data, "f32"
    (value,) = struct.unpack(
        _FORMATS.get(name, "<B"), data
    )  # of types that numpy has not, the code
    if not isinstance(value, float):
        return wrap(value)
    if math.isnan(value):
        return 0
    if value >= float(_MAX):
        return _MAX
    return _MIN if value <= float(_MIN) else int(value)
