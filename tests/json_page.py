"""The tables of ``docs/json.md``, made from the schemas of ``docs/json``.

In: schemas. Out: Markdown. Not done here: checking what a command prints (``json_schemas``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.json_schemas import names, schema

HEADING = "## The objects"
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "any object",
}
_HEAD = ("| key | type | meaning |", "|---|---|---|")


def page_text(page: str) -> str:
    """Return the page with tables that say what the schemas say; the text before them stays."""
    prose, _, _ = page.partition(HEADING)
    return "\n".join([f"{prose}{HEADING}", "", *_lines()])


def _lines() -> Iterator[str]:
    for name in names():
        yield from _section(name, schema(name))
    yield from _section("common", schema("common"))


def _section(name: str, found: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {found['title']}", "", f"[json/{name}.json](json/{name}.json)", "")
    parts: dict[str, dict[str, Any]] = {"": found, **found.get("$defs", {})}
    for part, values in parts.items():
        if values.get("properties"):
            yield from (f"`{part}`:", "") if len(parts) > 2 else ()
            yield from (*_HEAD, *_rows(values, ""), "")
        elif part and "description" in values | {"description": ""} and name == "common":
            yield from (f"`{part}`: {_type(values)}", "")


def _rows(values: dict[str, Any], outer: str) -> Iterator[str]:
    for key, value in values["properties"].items():
        if key == "version":  # of every object
            continue
        optional = "" if key in values["required"] else "; may be missing"
        meaning = f"{value.get('description', '')}{optional}".removeprefix("; ")
        yield f"| `{outer}{key}` | {_type(value)} | {meaning} |"
        if key != "after" or value != values["properties"]["before"]:
            yield from _inner(value, f"{outer}{key}")


def _inner(value: dict[str, Any], path: str) -> Iterator[str]:
    """The rows of what is described inside of a value, and nowhere else."""
    for choice in value.get("anyOf", ()):
        yield from _inner(choice, path)
    if "properties" in value:
        yield from _rows(value, f"{path}.")
    elif isinstance(value.get("items"), dict):
        yield from _inner(value["items"], f"{path}[]")
    elif isinstance(value.get("additionalProperties"), dict):
        yield from _inner(value["additionalProperties"], f"{path}.*")


def _type(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(map(_type, value["anyOf"]))
    if "$ref" in value:
        return f"`{value['$ref'].rsplit('/', 1)[1]}`"
    if "const" in value:
        const = value["const"]
        return f"`{const if isinstance(const, str) else str(const).lower()}`"
    if "enum" in value:
        return ", ".join(f"`{text}`" for text in value["enum"])
    if "type" not in value:
        return "any value"
    given: Any = value["type"]
    types: list[str] = [given] if isinstance(given, str) else given
    return " or ".join(_one_type(name, value) for name in types)


def _one_type(name: str, value: dict[str, Any]) -> str:
    if name == "array":
        return f"list of {_type(value['items'])}"
    if name == "object" and "properties" in value:
        return "object"
    if name == "object" and value.get("additionalProperties"):
        return f"table of {_type(value['additionalProperties'])}"
    if name == "string" and "pattern" in value:
        return "64 hex digits"
    return _TYPES[name]
