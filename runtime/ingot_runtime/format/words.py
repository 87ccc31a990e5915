"""Streams of little-endian i64 words followed by text: the fixed-width form of plan and program.

In: bytes, or words and texts. Out: words and texts, checked. Not done here: what the words mean.
"""

import struct

from .checks import require
from .limits import NAME_SIZE_BYTES_MAX
from .text import forbidden_character


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
        require(0 <= count <= len(data) // 8 - 1, "word count lies", where, f"{count} words in {len(data)} bytes")
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
        require(0 <= count <= len(self._words) - self._at, "section ends too early", f"{self._where}, {what}")
        self._at += count
        return self._words[self._at - count : self._at]

    def text(self, what: str, size_bytes_max: int = NAME_SIZE_BYTES_MAX) -> str:
        """Return the next text; its length in bytes is the next word."""
        size_bytes = self.word(f"length of {what}", 0, size_bytes_max)
        data = self._texts[self._text_at : self._text_at + size_bytes]
        require(len(data) == size_bytes, "section ends too early", f"{self._where}, {what}")
        self._text_at += size_bytes
        return checked_text(data, what, self._where)

    def finish(self) -> None:
        """Raise unless everything was read."""
        require(self._at == len(self._words), "words left over", self._where, f"{len(self._words) - self._at} words")
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
    require(not forbidden, f"{what} holds a control character", where, f"{forbidden!a} in {text[:200]!a}")
    return text


class Writer:
    """Collects words and texts in the order that ``Reader`` reads them."""

    __slots__ = ("_texts", "_words")

    def __init__(self) -> None:
        self._words: list[int] = []
        self._texts: list[bytes] = []

    def word(self, *values: int) -> None:
        """Append words."""
        self._words += values

    def text(self, text: str) -> None:
        """Append a text and the word with its length in bytes."""
        data = text.encode()
        self._words.append(len(data))
        self._texts.append(data)

    def data(self) -> bytes:
        """Return the whole stream."""
        return struct.pack(f"<q{len(self._words)}q", len(self._words), *self._words) + b"".join(self._texts)
