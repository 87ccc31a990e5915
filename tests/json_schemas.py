"""What ``--json`` prints, held against the schemas of ``docs/json``.

In: a line that a command printed. Out: its values, or a failure that says where they differ. Not
done here: running commands.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.tidy.source import ROOT

FOLDER = ROOT / "docs" / "json"


def schema(name: str) -> dict[str, Any]:
    """Return the schema in ``docs/json/NAME.json``."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def names() -> list[str]:
    """Return the names of all schemas of objects."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "common")


@cache
def _validator(name: str) -> Draft202012Validator:
    common: Resource[Any] = Resource.from_contents(schema("common"))
    registry: Registry[Any] = Registry[Any]().with_resource("common.json", common)
    return Draft202012Validator(schema(name), registry=registry)


def checked(name: str, text: str) -> dict[str, Any]:
    """Return the one object on the one line of ``text``; it must be as its schema says."""
    (line,) = text.splitlines()
    values: dict[str, Any] = json.loads(line, parse_constant=_refuse)
    validator: Any = _validator(name)
    errors: list[Any] = list(validator.iter_errors(values))
    assert not errors, "\n".join(map(_told, errors))
    return values


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _told(error: Any) -> str:
    """The deepest reasons of an error: of a choice, why each alternative does not fit."""
    if error.context:
        return "\n".join(map(_told, error.context))
    place = "/".join(map(str, error.absolute_path))
    return f"{place}: {error.message[:300]}"
