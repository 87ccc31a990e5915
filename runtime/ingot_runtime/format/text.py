"""Texts that others wrote: which characters a bundle may not hold, and how any text is shown without doing harm.

In: a text. Out: whether a bundle may hold it; the same with what a terminal would obey written as escapes; the four parts of
an error as lines. Not done here: printing.

A file whose names move the cursor, or turn the direction of writing, could print the word "verified" itself.
"""

# FORMAT.md, "Words and texts": C0, DEL and C1; the marks and embeddings that reorder text; separators of lines and
# paragraphs; the byte order mark. Surrogates have no UTF-8.
FORBIDDEN_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069),
    (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip
_CONTINUED = "    "


def forbidden_character(text: str) -> str:
    """Return the first character of `text` that a bundle may not hold, "" if there is none."""
    if text.isprintable():  # no forbidden character is
        return ""
    for character in text:
        code = ord(character)
        if any(first <= code <= last for first, last in FORBIDDEN_RANGES):
            return character
    return ""


def printable(text: str) -> str:
    r"""Return `text` in one line that a terminal only shows: what is not printable becomes an escape, as in ``repr``.

    >>> printable("a\x1b[2J\n\u202e")
    'a\\x1b[2J\\n\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def printable_lines(text: str) -> str:
    """Return the same for a text of several lines: they stay lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def error_text(what: str, where: str, why: str, do: str) -> str:
    """Return the parts of an error as lines, empty ones left out; ``why`` may go on in lines that are indented."""
    reason = [
        _CONTINUED + line if index and line[:4] != _CONTINUED else line for index, line in enumerate(why.split("\n"))
    ]
    labelled = (("where", printable(where)), ("why", "\n".join(map(printable, reason))), ("do", printable(do)))
    return "\n".join([printable(what)] + [f"  {label}: {part}" for label, part in labelled if part])
