"""The base of everything that Ingot raises on purpose: an error in four parts.

In: what failed, where, why (expected and got), what to do. Out: ``IngotError``, its text. Not done
here: the kinds of errors (``errors`` of each package), printing.
"""

from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_CONTINUED = "    "


class IngotError(Exception):
    """An error whose ``str()`` is its four parts, fit to print; ``exit_code``: of the command.

    Each of ``parts`` is a text, or a value that refers to what has other words elsewhere and whose
    ``str()`` is the text without them; or a tuple of these, one after the other.
    """

    exit_code = 2

    def __init__(self, what: object, where: object = "", why: object = "", do: object = "") -> None:
        super().__init__(what)
        self.parts = what, where, why, do

    @property
    def what(self) -> str:
        """What failed."""
        return part_text(self.parts[0])

    @property
    def where(self) -> str:
        """The argument, file, node or section."""
        return part_text(self.parts[1])

    @property
    def why(self) -> str:
        """What was expected, and what was got."""
        return part_text(self.parts[2])

    @property
    def do(self) -> str:
        """What to do about it."""
        return part_text(self.parts[3])

    def at(self, where: object) -> "Self":
        """Return the error at another place."""
        what, _, why, do = self.parts
        return type(self)(what, where, why, do)

    def __str__(self) -> str:
        return error_text(self.what, self.where, self.why, self.do)


def part_text(part: object) -> str:
    """Return a part of an error as a text."""
    if not isinstance(part, tuple):
        return str(part)
    return "".join(map(str, part))  # pyright: ignore[reportUnknownArgumentType]


def error_text(what: str, where: str, why: str, do: str) -> str:
    """Return the parts of an error as lines, empty ones left out; ``why`` may go on in lines that
    are indented."""
    reason = [
        _CONTINUED + line if index and line[:4] != _CONTINUED else line
        for index, line in enumerate(why.split("\n"))
    ]
    labelled = (
        ("where", printable(where)),
        ("why", "\n".join(map(printable, reason))),
        ("do", printable(do)),
    )
    return "\n".join([printable(what)] + [f"  {label}: {part}" for label, part in labelled if part])
