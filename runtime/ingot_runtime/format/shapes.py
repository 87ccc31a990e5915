"""What decoded values must look like: one description for every reader of them.

In: a value of ``msgpack_decode``, its shape. Out: nothing, or a ``FormatError`` that names the
place. Not done here: what the values mean.

A shape is ``str``, ``bytes``, ``bool``, ``int`` (from 0 on); ``[shape]``, a list;
``(shape, shape)``, a list of exactly these; a dict, a map: with the key ``*``, any keys and one
shape; else its keys (those that end in ``?`` may be missing), and others of plain values without
bytes.
"""

from .checks import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = {str: "a text", bytes: "bytes", bool: "true or false", int: "a number from 0 on"}


def check_shape(value: "Any", shape: "Any", where: str) -> None:
    """Raise ``FormatError`` unless `value` has the shape."""
    # By class, not by `isinstance`: a bool is no number here.
    kind, got = shape.__class__, value.__class__
    if kind is dict:
        expected = "a map"
        if got is dict:
            _check_map(value, shape, where)
            return
    elif kind in (list, tuple):
        expected = "a list" if kind is list else f"a list of {len(shape)}"
        if got is list and (kind is list or len(value) == len(shape)):
            for index, item in enumerate(value):
                check_shape(item, shape[0 if kind is list else index], f"{where}, {index}")
            return
    else:
        expected = _KINDS[shape]
        if got is shape and (shape is not int or value >= 0):
            return
    # Shown here alone: the text of a table is long.
    require(False, "wrong value", where, f"expected {expected}, got {_shown(value)}")


def _check_map(value: "dict[str, Any]", shape: "dict[str, Any]", where: str) -> None:
    for name in shape:
        require(name in value or name[-1] in "*?", "missing value", f"{where}, {name}")
    for name, item in value.items():
        known = shape.get("*") or shape.get(name) or shape.get(f"{name}?")
        if known is None:
            _check_plain(item, f"{where}, {name}")
        else:
            check_shape(item, known, f"{where}, {name}")


def _check_plain(value: "Any", where: str) -> None:
    require(value.__class__ is not bytes, "wrong value", where, "expected no bytes")
    for item in (
        value.values() if value.__class__ is dict else value if value.__class__ is list else ()
    ):
        _check_plain(item, where)


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
