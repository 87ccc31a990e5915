"""Canonical msgpack: the one encoding of a value, without the 2-7 ms that importing msgpack costs.

In: None, bool, int, str, bytes, list or tuple, dict with str keys. Out: bytes, equal to
``msgpack.packb(value)`` with the keys sorted: shortest form of every item. Not done here: decoding,
floats, extension types (the format has none).
"""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def pack(value: object) -> bytes:
    """Encode `value`.

    Raises:
        TypeError: a value of another type, or a key that is not a str.
    """
    out: list[bytes] = []
    _pack(value, out)
    return b"".join(out)


def _pack(value: "Any", out: list[bytes]) -> None:
    if value is None:
        out.append(b"\xc0")
    elif isinstance(value, bool):
        out.append(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        out.append(_integer(value))
    elif isinstance(value, str):
        data = value.encode()
        out += (_head(len(data), 0xA0, 32, (0xD9, 0xDA, 0xDB)), data)
    elif isinstance(value, bytes):
        out += (_head(len(value), 0, 0, (0xC4, 0xC5, 0xC6)), value)
    else:
        _pack_many(value, out)


def _pack_many(value: "Any", out: list[bytes]) -> None:
    name = value.__class__.__name__
    if name in ("list", "tuple"):
        _pack_list(value, out)
    elif name == "dict":
        _pack_map(value, out)
    else:
        raise TypeError(f"no canonical msgpack for {name}")


def _pack_list(items: "Sequence[Any]", out: list[bytes]) -> None:
    out.append(_head(len(items), 0x90, 16, (0, 0xDC, 0xDD)))
    for item in items:
        _pack(item, out)


def _pack_map(table: "Mapping[Any, Any]", out: list[bytes]) -> None:
    out.append(_head(len(table), 0x80, 16, (0, 0xDE, 0xDF)))
    for key in sorted(table):
        if not isinstance(key, str):
            raise TypeError(f"map key is not a str: {key!r}")
        _pack(key, out)
        _pack(table[key], out)


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b", value)
    forms = (">B", ">H", ">I", ">Q") if value >= 0 else (">b", ">h", ">i", ">q")
    first = 0xCC if value >= 0 else 0xD0
    for step, form in enumerate(forms):
        bits = 8 << step
        if value < 1 << bits if value >= 0 else value >= -(1 << (bits - 1)):
            return bytes((first + step,)) + struct.pack(form, value)
    raise TypeError(f"integer of more than 64 bits: {value}")


def _head(count: int, fixed: int, fixed_count: int, codes: tuple[int, int, int]) -> bytes:
    """Return the type byte and length; a code of 0 is a width that this type does not have."""
    if count < fixed_count:
        return bytes((fixed | count,))
    if count < 1 << 8 and codes[0]:
        return bytes((codes[0], count))
    if count < 1 << 16:
        return bytes((codes[1],)) + struct.pack(">H", count)
    return bytes((codes[2],)) + struct.pack(">I", count)
