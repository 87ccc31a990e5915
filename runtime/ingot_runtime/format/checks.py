"""The one-line check that every reader of hostile bytes uses.

In: a condition and the parts of a message. Out: nothing, or a ``FormatError``. Not done here: reading.
"""

from ..errors import FormatError

DAMAGED = "copy the bundle again from where it was made; if that does not help, compile it again"


def require(condition: bool, what: str, where: str, why: str = "") -> None:
    """Raise ``FormatError(what, where, why)`` unless `condition` holds."""
    if not condition:
        raise FormatError(what, where, why, DAMAGED)
