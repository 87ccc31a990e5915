"""Reads one value of the project file by its type.

In: what stands there: plain values of TOML, or of a caller in Python. Out: texts, numbers, tuples;
or what was expected instead. Not done here: which keys there are (``schema``), messages
(``values``).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ingot_build_rules.making.options.compile_options import AUTO
from ingot_build_rules.making.project.lines import Path
from ingot_build_rules.making.project.problems import one_of
from ingot_build_rules.making.project.schema import TableKey, ValueKind
from ingot_compiler.ir.sizes.given_shape import shape_text

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
Reader = Callable[[object, TableKey], Any]


class WrongValueError(Exception):
    """A value is not what was ``expected``; ``part`` names the part of it that is at fault,
    ``wrong`` is that part."""

    def __init__(self, expected: str, part: Path = (), wrong: object = None) -> None:
        super().__init__(expected)
        self.expected, self.part, self.wrong = expected, part, wrong


def _text(given: object, key: TableKey) -> str:
    text = os.fspath(cast("os.PathLike[str]", given)) if hasattr(given, "__fspath__") else given
    if not isinstance(text, str):
        raise WrongValueError("expected a text")
    if not text or _CONTROL.search(text):
        expected = "expected a text of at least one character, none of them a control character"
        raise WrongValueError(expected)
    if key.choices and text not in key.choices:
        raise WrongValueError(one_of(key.choices))
    return text


def _texts(given: object, key: TableKey) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise WrongValueError("expected a list of at least one text")
    items = cast("Sequence[object]", given)
    return tuple(_inside(str(index), _text, item, key) for index, item in enumerate(items))


def _count(given: object, _key: TableKey) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise WrongValueError("expected a whole number above 0")
    return given


def _number(given: object, _key: TableKey) -> float:
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not math.isfinite(given)
        or given < 0
    ):
        raise WrongValueError("expected a number of at least 0")
    return float(given)


def _flag(given: object, _key: TableKey) -> bool:
    if not isinstance(given, bool):
        raise WrongValueError("expected true or false")
    return given


def _shapes(given: object, key: TableKey) -> tuple[tuple[tuple[str, str], ...], ...]:
    """One profile, or a list of them."""
    if not isinstance(given, list | tuple):
        return tuple(filter(None, (_profile(given, key),)))
    profiles = enumerate(cast("Sequence[object]", given))
    return tuple(_inside(str(at), _profile, each, key) for at, each in profiles)


def _profile(given: object, key: TableKey) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, _inside(name, _shape, value, key)) for name, value in _items(given)))


def _shape(given: object, _key: TableKey) -> str:
    try:
        return shape_text(given)
    except ValueError:
        expected = 'expected a shape such as "1x3x224x224", "?x3x1..8x224" or [1, 3, 224, 224]'
        raise WrongValueError(expected) from None


def _pairs(given: object, key: TableKey) -> tuple[tuple[str, str], ...]:
    """In the order of their names."""
    return tuple(sorted(_in_order(given, key)))


def _in_order(given: object, key: TableKey) -> tuple[tuple[str, str], ...]:
    return tuple((name, _inside(name, _text, value, key)) for name, value in _items(given))


def _places(given: object, key: TableKey) -> tuple[tuple[str, str], ...]:
    """Pairs, or ``auto`` for all nodes."""
    if isinstance(given, str) and given == AUTO:
        return (("*", AUTO),)
    if not isinstance(given, Mapping):
        raise WrongValueError(f'expected a table, or "{AUTO}"')
    return _in_order(cast("Mapping[str, object]", given), key)


def _items(given: object) -> list[tuple[str, object]]:
    if not isinstance(given, Mapping):
        raise WrongValueError("expected a table")
    return list(cast("Mapping[str, object]", given).items())


def _inside(name: str, read: Reader, given: object, key: TableKey) -> Any:
    """Read a part of a value; a mistake is that of the part, not of the whole."""
    try:
        return read(given, key)
    except WrongValueError as error:
        wrong = error.wrong if error.part else given
        raise WrongValueError(error.expected, (name, *error.part), wrong) from None


READERS: Mapping[ValueKind, Reader] = {
    "text": _text,
    "texts": _texts,
    "count": _count,
    "number": _number,
    "flag": _flag,
    "shapes": _shapes,
    "pairs": _pairs,
    "places": _places,
}
"""By kind of value. Each reader takes what stands there and its key, and raises
``WrongValueError``."""
