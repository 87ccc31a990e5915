"""What differs between two bundles: section by section, entry by entry, kernel by kernel.

In: two paths. Out: plain values with what was before and what is after; lines made from them. Not
done here: why they differ (``ingot why``).
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ingot_artifacts.inspect.describe import describe_bundle
from ingot_artifacts.inspect.named_launches import launches_by_name, versions_by_name

Described = Mapping[str, Any]
Entries = dict[str, Any]
"""Name -> value, of one kind of thing in one bundle."""

_SHOWN_DIGITS = 16


def compare_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> Entries:
    """Return whether two bundles are ``equal``, which they are, and their ``differences``: for each
    table (sections, inputs, kernels, ...) the list of what is not the same, each with its ``name``
    and its value ``before`` and ``after``, None where a bundle has no such thing.

    Raises:
        BundleError: one of them is not a valid bundle.
    """
    left, right = describe_bundle(first), describe_bundle(second)
    equal = left["digest"] == right["digest"]
    return {
        "equal": equal,
        "before": _identity(first, left),
        "after": _identity(second, right),
        "differences": {
            table: [] if equal else _differences(entries(left), entries(right))
            for table, (_, entries) in _TABLES.items()
        },
    }


def difference_lines(compared: Mapping[str, Any]) -> list[str]:
    """Return what ``compare_bundles`` found for people: one line per difference; none if the
    bundles are the same bytes."""
    lines = [
        _line(f"{_TABLES[table][0]}{item['name']}", item["before"], item["after"])
        for table, items in compared["differences"].items()
        for item in items
    ]
    if lines or compared["equal"]:
        return lines
    return [_line("digest", compared["before"]["digest"], compared["after"]["digest"])]


def diff_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> list[str]:
    """Return one line per difference; none if the bundles are the same bytes.

    Raises:
        BundleError: one of them is not a valid bundle.
    """
    return difference_lines(compare_bundles(first, second))


def _identity(path: str | os.PathLike[str], described: Described) -> Entries:
    facts = {name: described[name] for name in ("digest", "size_bytes")}
    return {"bundle": os.fspath(path), **facts}


def _differences(before: Entries, after: Entries) -> list[Entries]:
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in [*before, *(name for name in after if name not in before)]
        if before.get(name) != after.get(name)
    ]


def _sections(described: Described) -> Entries:
    """Sections by kind and number; the weights have the digest of their tree."""
    rows: list[dict[str, Any]] = described["sections"]
    trees = {row["id"]: row["digest"] for row in rows if row["kind"] == "tree"}
    return {
        f"{row['kind']} {row['id']}": {
            "size_bytes": row["size_bytes"],
            "digest": row["digest"] or trees.get(row["id"]),
        }
        for row in rows
    }


def _properties(described: Described) -> Entries:
    return {name: described[name] for name in ("format", "model", "symbols")}


def _rows(table: str, key: str) -> Callable[[Described], Entries]:
    """The rows of a table by one of their values, which no two have in common."""
    return lambda described: {
        row[key]: {name: value for name, value in row.items() if name != key}
        for row in described[table]
    }


def _libraries(described: Described) -> Entries:
    return {str(number): row for number, row in enumerate(described["libraries"])}


def _memory(described: Described) -> Entries:
    """What each variant needs, and where it is recorded, what its plan was worth."""
    planned: dict[str, Any] = described["debug"].get("memory", {})
    return {
        target: {**sizes, **planned.get(target, {})}
        for target, sizes in described["memory"].items()
    }


def _kernels(described: Described) -> Entries:
    """Kernels by target and symbol, also those of libraries, with the digest of their loops where a
    bundle has them."""
    libraries = zip(described["libraries"], described["library_kernels"], strict=False)
    tables = [*described["kernels"].items(), *((row["target"], names) for row, names in libraries)]
    programs: dict[str, dict[str, bytes]] = described["debug"].get("programs", {})
    return {
        f"{target}/{symbol}": {"loops_digest": _digest(programs.get(target, {}).get(symbol))}
        for target, symbols in tables
        for symbol in symbols
    }


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def _debug(described: Described) -> Entries:
    """What is told of a bundle and stands in no other table."""
    elsewhere = ("launches", "programs", "memory", "versions")
    return {name: value for name, value in described["debug"].items() if name not in elsewhere}


_TABLES: dict[str, tuple[str, Callable[[Described], Entries]]] = {
    "sections": ("section ", _sections),
    "properties": ("", _properties),
    "devices": ("device ", _rows("devices", "name")),
    "libraries": ("library ", _libraries),
    "inputs": ("input ", _rows("inputs", "name")),
    "outputs": ("output ", _rows("outputs", "name")),
    "variants": ("variant ", _rows("variants", "target")),
    "memory": ("memory of ", _memory),
    "versions": ("version ", versions_by_name),
    "launches": ("launch ", launches_by_name),
    "lock": ("lock ", lambda described: dict(described["lock"])),
    "debug": ("", _debug),
    "kernels": ("kernel ", _kernels),
}
"""Table -> how lines begin, what is in it."""


def _line(what: str, before: Any, after: Any) -> str:
    if before is None or after is None:
        return f"{what}: only in the {'first' if after is None else 'second'}"
    if _are_tables(before, after):
        return f"{what}: {'; '.join(_changes(before, after))}"
    return f"{what}: {_text(before)} -> {_text(after)}"


def _changes(before: Entries, after: Entries, outer: str = "") -> list[str]:
    """Each value that is not the same, by its place."""
    found: list[str] = []
    for item in _differences(before, after):
        name, old, new = f"{outer}{item['name']}", item["before"], item["after"]
        if _are_tables(old, new):
            found += _changes(old, new, f"{name}.")
        else:
            found.append(f"{name} {_text(old)} -> {_text(new)}")
    return found


def _are_tables(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)


def _text(value: Any) -> str:
    """Digests are cut; all else is as JSON has it."""
    if isinstance(value, str):
        return value[:_SHOWN_DIGITS] if len(value) == hashlib.sha256().digest_size * 2 else value
    return json.dumps(value, ensure_ascii=False)
