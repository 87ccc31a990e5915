"""Texts that others wrote: which characters a bundle may not hold.

In: a text. Out: whether a bundle may hold it. Not done here: showing it (``printable``).

A file whose names move the cursor, or turn the direction of writing, could print the word "verified" itself.
"""

# FORMAT.md, "Words and texts": C0, DEL and C1; the marks and embeddings that reorder text; separators of lines and
# paragraphs; the byte order mark. Surrogates have no UTF-8.
FORBIDDEN_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069),
    (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip


def forbidden_character(text: str) -> str:
    """Return the first character of `text` that a bundle may not hold, "" if there is none."""
    if text.isprintable():  # no forbidden character is
        return ""
    for character in text:
        code = ord(character)
        if any(first <= code <= last for first, last in FORBIDDEN_RANGES):
            return character
    return ""
