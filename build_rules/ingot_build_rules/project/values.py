"""Typed values of one table: each key known, each value of its type.

In: a tree's table, its schema. Out: the values that are right, by key; problems. Not done here:
what names refer to (``read``).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ingot_build_rules.compilation.options import read_sizes
from ingot_build_rules.project.lines import Path
from ingot_build_rules.project.problems import Findings, closest, did_you_mean, one_of
from ingot_build_rules.project.schema import TABLES, Table, TableKey, ValueKind

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LIST_TEXT_MAX = 60
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _WrongValueError(Exception):
    """A value is not what was ``expected``; ``part`` names the part of it that is at fault,
    ``wrong`` is that part."""

    def __init__(self, expected: str, part: Path = (), wrong: object = None) -> None:
        super().__init__(expected)
        self.expected, self.part, self.wrong = expected, part, wrong


def header(path: Path) -> str:
    """Write a table's header as the file would: ``[model.a]``."""
    return f"[{dotted(path)}]"


def dotted(path: Path) -> str:
    """Write a path as the file and ``--config`` do; parts that need quotes get them."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def read_values(findings: Findings, path: Path, given: object, table: Table) -> dict[str, Any]:
    """Check one table and return its values; what is wrong is noted and left out.

    A text stays one, ``texts`` are a tuple, ``shapes`` and ``pairs`` are tuples of pairs in their
    order.
    """
    if not isinstance(given, Mapping):
        why = f"expected a table, got {describe(given)}"
        findings.add(
            path,
            f"{header(path)} is no table",
            why,
            f"write {header(path)} on a line of its own, keys below",
        )
        return {}
    tree = cast("Mapping[str, object]", given)
    meant = {
        _report_unknown(findings, (*path, name), table) for name in tree if table.key(name) is None
    }
    values: dict[str, Any] = {}
    for key in table.keys:
        if key.name in tree:
            _read_value(findings, (*path, key.name), tree[key.name], key, values)
        elif key.required and key.name not in meant:
            why = f"expected {key.name} = ..., got no such key"
            findings.add(
                path,
                f"{header(path)} lacks {key.name!r}",
                why,
                f"add for example: {key.name} = {key.example}",
            )
    return values


def describe(value: object) -> str:
    """Name a value's type and the value for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence):
        text = repr(list(cast("Sequence[object]", value)))
        return f"the list {text}" if len(text) <= _LIST_TEXT_MAX else "a long list"
    return f"the value {value}"


def _report_unknown(findings: Findings, path: Path, table: Table) -> str | None:
    """Note an unknown key; return the key that was probably meant, so that it is not reported as
    missing as well."""
    name, known = path[-1], [key.name for key in table.keys]
    elsewhere = [kind for kind, other in TABLES.items() if other.key(name)]
    otherwise = f"{name!r} belongs into {header((elsewhere[0],))}" if elsewhere else "remove it"
    do = did_you_mean(name, known, otherwise)
    findings.add(path, f"unknown key {name!r} in {header(path[:-1])}", one_of(known), do)
    return closest(name, known)


def _read_value(
    findings: Findings, path: Path, given: object, key: TableKey, values: dict[str, Any]
) -> None:
    try:
        values[key.name] = _READERS[key.kind](given, key)
    except _WrongValueError as error:
        wrong = error.wrong if error.part else given
        what = f"wrong value of {dotted((key.name, *error.part))!r} in {header(path[:-1])}"
        findings.add(
            (*path, *error.part),
            what,
            f"{error.expected}, got {describe(wrong)}",
            _cure(given, wrong, key),
        )


def _cure(given: object, wrong: object, key: TableKey) -> str:
    if isinstance(wrong, str) and key.choices:
        close = closest(wrong, key.choices)
        if close is not None:
            return f"did you mean {close!r}?"
    if key.kind == "texts" and isinstance(given, str):
        return f'write {key.name} = ["{given}"]'
    return f"write for example: {key.name} = {key.example}"


def _text(given: object, key: TableKey) -> str:
    text = os.fspath(cast("os.PathLike[str]", given)) if hasattr(given, "__fspath__") else given
    if not isinstance(text, str):
        raise _WrongValueError("expected a text")
    if not text or _CONTROL.search(text):
        raise _WrongValueError(
            "expected a text of at least one character, none of them a control character"
        )
    if key.choices and text not in key.choices:
        raise _WrongValueError(one_of(key.choices))
    return text


def _texts(given: object, key: TableKey) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise _WrongValueError("expected a list of at least one text")
    items = cast("Sequence[object]", given)
    return tuple(_inside(str(index), _text, item, key) for index, item in enumerate(items))


def _count(given: object, _key: TableKey) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise _WrongValueError("expected a whole number above 0")
    return given


def _number(given: object, _key: TableKey) -> float:
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not math.isfinite(given)
        or given < 0
    ):
        raise _WrongValueError("expected a number of at least 0")
    return float(given)


def _shapes(given: object, key: TableKey) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((name, _inside(name, _sizes, value, key)) for name, value in _items(given)))


def _sizes(given: object, _key: TableKey) -> tuple[int, ...]:
    expected = 'expected sizes such as "1x3x224x224" or [1, 3, 224, 224]'
    if isinstance(given, str):
        try:
            return read_sizes(given)
        except ValueError:
            raise _WrongValueError(expected) from None
    sizes = cast("Sequence[object]", given) if isinstance(given, list | tuple) else [None]
    if not all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes
    ):
        raise _WrongValueError(expected)
    return cast("tuple[int, ...]", tuple(sizes))


def _pairs(given: object, key: TableKey) -> tuple[tuple[str, str], ...]:
    return tuple((name, _inside(name, _text, value, key)) for name, value in _items(given))


def _items(given: object) -> list[tuple[str, object]]:
    if not isinstance(given, Mapping):
        raise _WrongValueError("expected a table")
    return list(cast("Mapping[str, object]", given).items())


def _inside(
    name: str, read: Callable[[object, TableKey], Any], given: object, key: TableKey
) -> Any:
    """Read a part of a value; a mistake is that of the part, not of the whole."""
    try:
        return read(given, key)
    except _WrongValueError as error:
        raise _WrongValueError(error.expected, (name,), given) from None


_READERS: Mapping[ValueKind, Callable[[object, TableKey], Any]] = {
    "text": _text,
    "texts": _texts,
    "count": _count,
    "number": _number,
    "shapes": _shapes,
    "pairs": _pairs,
}
