"""Canonical msgpack read back: what ``msgpack_canonical`` writes, and not one byte else.

In: bytes that anybody may have written. Out: None, bool, int, str, bytes, list, dict with str keys.
Not done here: what they mean (``shapes``).

Not by the msgpack package: it makes a list as long as its head promises before it has read one
item.
"""

from .checks import require
from .limits import DEPTH_MAX, VALUE_COUNT_MAX
from .msgpack_canonical import pack
from .schema import checked_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# First byte -> (kind, bytes of the length or the number).
_HEADS = {
    **{0xC4 + step: ("bytes", 1 << step) for step in range(3)},
    **{0xCC + step: ("number", 1 << step) for step in range(4)},
    **{0xD0 + step: ("number", 1 << step) for step in range(4)},
    **{0xD9 + step: ("text", 1 << step) for step in range(3)},
    **{0xDC + step: ("list", 2 << step) for step in range(2)},
    **{0xDE + step: ("map", 2 << step) for step in range(2)},
}

_SIGNED = range(0xD0, 0xD4)


def unpack(data: bytes, where: str) -> "Any":
    """Return the value that `data` encodes.

    Raises:
        FormatError: it encodes none, or its canonical form is another one, or it is nested deeper
            or has more values than FORMAT.md allows.
    """
    reader = _Reader(data, where)
    value = reader.value(0)
    # One comparison stands for all rules of the form: shortest heads, sorted keys, none twice,
    # nothing behind the end.
    require(
        pack(value) == data, "not canonical msgpack", where, "another encoding of the same values"
    )
    return value


class _Reader:
    __slots__ = ("_at", "_count", "_data", "_where")

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._at = 0
        self._count = 0
        self._where = where

    def value(self, depth: int) -> "Any":
        """Read one value; `depth` containers are around it."""
        self._count += 1
        few = depth <= DEPTH_MAX and self._count <= VALUE_COUNT_MAX
        require(few, "too many values", self._where, "see FORMAT.md")
        code = self._take(1)[0]
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        kind, number = self._head(code)
        if kind == "number":
            return number
        if kind == "list":
            return [self.value(depth + 1) for _ in range(number)]
        if kind == "map":
            return {self._key(): self.value(depth + 1) for _ in range(number)}
        return self._take(number) if kind == "bytes" else self._text(number, "text")

    def _head(self, code: int) -> tuple[str, int]:
        """Return the kind, and the number itself or the count that comes before a content."""
        if code < 0x80 or code >= 0xE0:
            return "number", code - (code >= 0xE0) * 0x100
        if code < 0x90:
            return "map", code & 0x0F
        if code < 0xA0:
            return "list", code & 0x0F
        if code < 0xC0:
            return "text", code & 0x1F
        kind, width = _HEADS.get(code, ("", 0))
        where = f"{self._where}, offset {self._at - 1}"
        require(width > 0, "not canonical msgpack", where, f"byte {code:#x}")
        return kind, int.from_bytes(self._take(width), "big", signed=code in _SIGNED)

    def _key(self) -> str:
        kind, size_bytes = self._head(self._take(1)[0])
        require(kind == "text", "a key is not a text", f"{self._where}, offset {self._at}")
        return self._text(size_bytes, "key")

    def _text(self, size_bytes: int, what: str) -> str:
        return checked_text(self._take(size_bytes), what, f"{self._where}, offset {self._at}")

    def _take(self, size_bytes: int) -> bytes:
        part = self._data[self._at : self._at + size_bytes]
        require(
            len(part) == size_bytes, "section ends too early", self._where, f"at offset {self._at}"
        )
        self._at += size_bytes
        return part
