"""Where weights of the host lie in another bundle: FORMAT.md, "Shared".

In: the bytes of such a section. Out: ``Shared``. Not done here: the other bundle (``base``), making such a
section (``ingot_build_rules.tools.ship.share``).
"""

from .checks import require
from .limits import ALIGNMENT_MAPPED_BYTES, SHARED_COUNT_MAX, SIZE_BYTES_MAX
from .schema import Reader

_WHERE = "section shared 0"


class Shared:
    """``digest`` and ``name``: of the other bundle and its file, in the folder of this one; ``rows``:
    (offset, offset in its weights, bytes); ``size_bytes``: of the weights together."""

    __slots__ = ("digest", "name", "rows", "size_bytes")

    def __init__(self, data: bytes, own_bytes: int) -> None:
        """`own_bytes`: of the bundle's own section; ``FormatError`` where any rule is broken."""
        words, unit = Reader(data, _WHERE), ALIGNMENT_MAPPED_BYTES
        self.digest = words.text("digest")
        hexadecimal = len(self.digest) == 64 and set(self.digest) <= set("0123456789abcdef")
        require(hexadecimal, "not a digest", _WHERE, self.digest)
        self.name = words.text("file name")
        good = self.name not in ("", ".", "..") and "/" not in self.name
        require(good, "not a name of a file", _WHERE, self.name)
        self.size_bytes = words.word("size of the weights", unit, SIZE_BYTES_MAX)
        self.rows: list[tuple[int, int, int]] = []
        end, own = 0, self.size_bytes
        for _ in range(words.word("row count", 1, SHARED_COUNT_MAX)):
            at = words.word("offset", end, self.size_bytes)
            there = words.word("offset in the other weights", 0, SIZE_BYTES_MAX)
            size = words.word("bytes", unit, self.size_bytes - at)
            require(not (at | there | size) % unit, "a row is not of whole pages", _WHERE, f"{at}")
            self.rows.append((at, there, size))
            end, own = at + size, own - size
        words.finish()
        why = f"expected {own} bytes, got {own_bytes}"
        require(own == own_bytes > 0, "wrong size of weights", "section weights 0", why)
