"""``KIND[:ID][,target=T][,scope=S]``: what a user says of a device, to declare it and to bind it.

In: such a text. Out: ``DeviceText``. Not done here: what targets and scopes there are.
"""

from ..errors import InputError
from .plan import DEVICE_KINDS
from .schema import CODE_MAX

_KEYS = ("target", "scope")
_SPELLING = "write KIND[:ID][,target=T][,scope=S]"


class DeviceText:
    """``target`` and ``scope`` are "" where the text says nothing of them."""

    __slots__ = ("id", "kind", "scope", "target")

    def __init__(self, kind: str, id: int, target: str, scope: str) -> None:
        self.kind = kind
        self.id = id
        self.target = target
        self.scope = scope


def read_device_text(text: str, where: str, kinds: "tuple[str, ...]" = DEVICE_KINDS) -> DeviceText:
    """Read a device of one of these kinds; without an id it is the first one.

    Raises:
        InputError: an unknown kind, no id, an unknown key, a key twice.
    """
    head, *rest = text.split(",")
    kind, colon, number = head.partition(":")
    if kind not in kinds:
        why = f"expected one of {', '.join(kinds)}, got {text!r}"
        do = suggest_name(kind, kinds) or "choose one of these"
        raise InputError(f"unknown device kind {kind!r}", where, why, do)
    values: dict[str, str] = {}
    for part in rest:
        key, _, value = part.partition("=")
        if key not in _KEYS or not value:
            why = f"expected target=TARGET or scope=NAME, got {part!r}"
            do = suggest_name(key, _KEYS) or _SPELLING
            raise InputError("a device is not understood", where, why, do)
        if key in values:
            why = f"a device has one {key}, got {text!r}"
            raise InputError(f"{key} is given twice", where, why, "leave one out")
        values[key] = value
    id_ = _id(number, where) if colon else 0
    return DeviceText(kind, id_, values.get("target", ""), values.get("scope", ""))


def _id(number: str, where: str) -> int:
    whole = number.isascii() and number.isdigit() and len(number) <= len(str(CODE_MAX))
    if not whole or int(number) > CODE_MAX:
        why = f"expected a number from 0 to {CODE_MAX}, got {number!r}"
        raise InputError("a device has no such id", where, why, "write KIND:0, KIND:1, ...")
    return int(number)


def suggest_name(name: str, known: "tuple[str, ...]") -> str:
    """Say which known name was probably meant, if any."""
    import difflib

    close = [other for other in difflib.get_close_matches(name, known, n=1) if other != name]
    return f"did you mean {close[0]!r}?" if close else ""
