"""Typed values of one table: each key known, each value of its type.

In: a tree's table, its schema. Out: the values that are right, by key; problems. Not done here:
reading one value (``read_value``), what names refer to (``references``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ingot_build_rules.making.project.lines import Path
from ingot_build_rules.making.project.problems import Findings, closest, did_you_mean, one_of
from ingot_build_rules.making.project.read_value import READERS, WrongValueError
from ingot_build_rules.making.project.schema import TABLES, Table, TableKey

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LIST_TEXT_MAX = 60


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
    if isinstance(given, Mapping):
        return _read_keys(findings, path, cast("Mapping[str, object]", given), table)
    why, do = f"got {describe(given)}", f"write {header(path)} on a line of its own, keys below"
    findings.add(path, f"{header(path)} is no table", f"expected a table, {why}", do)
    return {}


def _read_keys(
    findings: Findings, path: Path, given: Mapping[str, object], table: Table
) -> dict[str, Any]:
    unknown = [name for name in given if table.key(name) is None]
    suggested = {_report_unknown(findings, (*path, name), table) for name in unknown}
    values: dict[str, Any] = {}
    for key in table.keys:
        if key.name in given:
            _read_value(findings, (*path, key.name), given[key.name], key, values)
        elif key.required and key.name not in suggested:
            what, why = f"{header(path)} lacks {key.name!r}", f"expected {key.name} = ..."
            do = f"add for example: {key.name} = {key.example}"
            findings.add(path, what, f"{why}, got no such key", do)
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
        values[key.name] = READERS[key.kind](given, key)
    except WrongValueError as error:
        wrong = error.wrong if error.part else given
        what = f"wrong value of {dotted((key.name, *error.part))!r} in {header(path[:-1])}"
        why = f"{error.expected}, got {describe(wrong)}"
        findings.add((*path, *error.part), what, why, _cure(given, wrong, key))


def _cure(given: object, wrong: object, key: TableKey) -> str:
    if isinstance(wrong, str) and key.choices:
        close = closest(wrong, key.choices)
        if close is not None:
            return f"did you mean {close!r}?"
    if key.kind == "texts" and isinstance(given, str):
        return f'write {key.name} = ["{given}"]'
    return f"write for example: {key.name} = {key.example}"
