"""Streams of little-endian i64 words followed by text: the fixed-width form of plan and program.

In: bytes. Out: words and texts, checked. Not done here: what the words mean, writing them
(``ingot_artifacts.bundle.encode_plan``).
"""

import struct

from .checks import require
from .limits import NAME_SIZE_BYTES_MAX

# FORMAT.md, "Words and texts": names that move the cursor, or turn the direction of writing, could
# print the word "verified" themselves. C0, DEL and C1; the marks and embeddings that
# reorder text; separators of lines and paragraphs; the byte order mark. Surrogates have no UTF-8.
FORBIDDEN_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200E, 0x200F), (0x2028, 0x202E),
    (0x2066, 0x2069), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip


class Reader:
    """Reads words one by one from private bytes; every read is checked against the end."""

    __slots__ = ("_at", "_text_at", "_texts", "_where", "_words")

    def __init__(self, data: bytes, where: str) -> None:
        """Split `data`: one word with the count of words, the words, the text.

        Raises:
            FormatError: the count lies.
        """
        require(len(data) >= 8, "section ends too early", where, f"{len(data)} bytes")
        (count,) = struct.unpack_from("<q", data)
        why = f"{count} words in {len(data)} bytes"
        require(0 <= count <= len(data) // 8 - 1, "word count lies", where, why)
        self._words: tuple[int, ...] = struct.unpack_from(f"<{count}q", data, 8)
        self._texts = data[8 + 8 * count :]
        self._at = 0
        self._text_at = 0
        self._where = where

    def word(self, what: str, low: int, high: int) -> int:
        """Return the next word; it must lie in [`low`, `high`]."""
        require(self._at < len(self._words), "section ends too early", f"{self._where}, {what}")
        value = self._words[self._at]
        why = f"expected {low} to {high}, got {value}"
        require(low <= value <= high, f"bad {what}", f"{self._where}, word {self._at}", why)
        self._at += 1
        return value

    def words(self, what: str, count: int) -> tuple[int, ...]:
        """Return the next `count` words, unchecked."""
        fits = 0 <= count <= len(self._words) - self._at
        require(fits, "section ends too early", f"{self._where}, {what}")
        self._at += count
        return self._words[self._at - count : self._at]

    def text(self, what: str, size_bytes_max: int = NAME_SIZE_BYTES_MAX) -> str:
        """Return the next text; its length in bytes is the next word."""
        size_bytes = self.word(f"length of {what}", 0, size_bytes_max)
        data = self._texts[self._text_at : self._text_at + size_bytes]
        require(len(data) == size_bytes, "section ends too early", f"{self._where}, {what}")
        self._text_at += size_bytes
        return checked_text(data, what, self._where)

    def texts(self, what: str, count_max: int) -> tuple[str, ...]:
        """Return the next texts; their count is the next word."""
        count = self.word(f"{what} count", 0, count_max)
        return tuple(self.text(what) for _ in range(count))

    def finish(self) -> None:
        """Raise unless everything was read."""
        left = len(self._words) - self._at
        require(left == 0, "words left over", self._where, f"{left} words")
        left = len(self._texts) - self._text_at
        require(left == 0, "text left over", self._where, f"{left} bytes")


def checked_text(data: bytes, what: str, where: str) -> str:
    """Return a text of the file.

    Raises:
        FormatError: not UTF-8, or with a character that a bundle may not hold.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        require(False, f"{what} is not UTF-8", where, str(error))
        raise AssertionError from None  # `require(False)` has raised
    forbidden = forbidden_character(text)
    why = f"{forbidden!a} in {text[:200]!a}"
    require(not forbidden, f"{what} holds a control character", where, why)
    return text


def forbidden_character(text: str) -> str:
    """Return the first character of `text` that a bundle may not hold, "" if there is none."""
    if text.isprintable():  # no forbidden character is
        return ""
    for character in text:
        code = ord(character)
        if any(first <= code <= last for first, last in FORBIDDEN_RANGES):
            return character
    return ""
