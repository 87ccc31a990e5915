"""The shape of an input as a user writes it: ``1x3x224x224``, ``?x3x224x224``, ``1..8x16``.

In: a text, or the same as Python values. Out: ``GivenShape``, its text. Not done here: what the
model says of the input (``frontend.inputs.input_types``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

GivenSize = tuple[int, int] | None
"""From the first size to the second, both included; None stands for any."""
GivenShape = tuple[GivenSize, ...]
EXPECTED = "expected sizes such as 1x3x224x224, ?x3x224x224 or 1..8x3x224x224"


def read_shape(text: str) -> GivenShape:
    """Read a text; ``?`` is any size, ``1..8`` a range, ``scalar`` rank 0.

    Raises:
        ValueError: anything else; the message says what was expected.
    """
    parts = [] if text == "scalar" else text.replace(",", "x").split("x")
    return tuple(_read_size(part, text) for part in parts)


def format_shape(shape: GivenShape) -> str:
    """The text of a shape: ``read_shape(format_shape(shape)) == shape``."""
    return "x".join(map(format_size, shape)) if shape else "scalar"


def format_size(size: GivenSize) -> str:
    """``3``, ``1..8`` or ``?``."""
    if size is None:
        return "?"
    least, most = size
    return str(least) if least == most else f"{least}..{most}"


def shape_text(given: object) -> str:
    """The canonical text of a shape that is a text, or a list of sizes: whole numbers, None, pairs
    of the ends of a range, texts of one size.

    Raises:
        ValueError: anything else; the message says what was expected.
    """
    if isinstance(given, str):
        return format_shape(read_shape(given))
    if isinstance(given, list | tuple):
        sizes = cast("Sequence[object]", given)
        return "x".join(map(_size_text, sizes)) if sizes else "scalar"
    raise ValueError(f"{EXPECTED}, or a list of sizes, got {given!r}")


def _size_text(given: object) -> str:
    if given is None:
        return "?"
    if isinstance(given, tuple) and len(cast("tuple[object, ...]", given)) == 2:
        given = "..".join(map(str, cast("tuple[object, object]", given)))
    if isinstance(given, int | str) and not isinstance(given, bool):
        return format_size(_read_size(str(given), str(given)))
    raise ValueError(f"expected sizes such as 3, '?' or '1..8', got {given!r}")


def _read_size(part: str, text: str) -> GivenSize:
    if part == "?":
        return None
    least, dots, most = part.partition("..")
    ends = (least, most if dots else least)
    if not all(end.isdecimal() and end.isascii() and len(end) < 40 for end in ends):
        raise ValueError(f"{EXPECTED}, got {text!r}")
    low, high = map(int, ends)
    if low > high:
        raise ValueError(f"expected a range from its smallest size to its largest, got {part!r}")
    return low, high
