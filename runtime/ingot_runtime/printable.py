"""How any text is shown without doing harm, whoever wrote it.

In: a text. Out: the same with what a terminal would obey written as escapes. Not done here:
printing; errors (``ingot_error``).
"""


def printable(text: str) -> str:
    r"""Return `text` in one line that a terminal only shows: what is not printable becomes an
    escape, as in ``repr``.

    >>> printable("a\x1b[2J\n\u202e")
    'a\\x1b[2J\\n\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
