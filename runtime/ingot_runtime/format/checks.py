"""The one-line check that every reader of hostile bytes uses.

In: a condition and the parts of a message. Out: nothing, or a ``FormatError``. Not done here:
reading.
"""

from ..errors import FormatError, VersionError

DAMAGED = "copy the bundle again from where it was made; if that does not help, compile it again"


def require(condition: bool, what: str, where: str, why: str = "") -> None:
    """Raise ``FormatError(what, where, why)`` unless `condition` holds."""
    if not condition:
        raise FormatError(what, where, why, DAMAGED)


def require_all(where: str, *rules: tuple[bool, str, str]) -> None:
    """Raise ``FormatError`` for the first of `rules` (condition, what, why) that does not hold."""
    for condition, what, why in rules:
        require(condition, what, where, why)


_UPDATE = "update ingot-runtime, or compile the bundle with the ingot of this loader's version"


def unknown(what: str, where: str, why: str = "the bundle needs it") -> VersionError:
    """Return the error for a number of a list that grows: a later minor version may have it."""
    return VersionError(f"{what} is not known to this loader", where, why, _UPDATE)
