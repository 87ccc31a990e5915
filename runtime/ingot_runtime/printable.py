"""How any text is shown without doing harm, whoever wrote it.

In: a text. Out: the same with what a terminal would obey written as escapes; the four parts of an error as lines. Not done here:
printing.
"""

_CONTINUED = "    "


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
