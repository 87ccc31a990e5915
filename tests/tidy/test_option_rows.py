"""What pages and schemas say of options that need no file and no machine is made from their rows, and
``make pages`` writes it; of the others, pages have the rows."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from tests.tidy.source import ROOT

import ingot
from ingot_build_rules.making.options.option_rows import (
    CHOICE_ROWS,
    DEFAULTS,
    ROWS,
    OptionRow,
    key,
    spelling,
)
from ingot_build_rules.making.options.options import words_of

DOCS = ROOT / "docs"
KINDS = {"flag": "true or false", "text": "text", "texts": "list of texts"}


def in_python(field: str, row: OptionRow) -> str:
    """A row of the table of arguments."""
    words = ", ".join(f'`"{word}"`' for word in words_of(field))
    says = f"{row.meaning}: {words}" if words else row.meaning
    like = f"`{row.example}`: " if row.is_many else ""
    return f"| `{field}` | {like}{says} (see `--{spelling(field)}`) |"


def in_defaults(field: str, row: OptionRow) -> str:
    """A row of ``[defaults]``."""
    return f"| `{key(field)}` | {KINDS[row.value_type]} | `{default(field)}` | for bundles |"


def in_bundle(field: str, row: OptionRow) -> str:
    """A row of ``[bundle.NAME]``."""
    values = ", ".join(f"`{word}`" for word in row.words) or KINDS[row.value_type]
    otherwise = "none" if row.is_many else f"`{default(field)}`"
    if "defaults" in row.tables:
        otherwise = "`[defaults]`"
    like = f"`{row.example}`: " if row.is_many else ""
    says = f"{like}{row.meaning}, as `--{spelling(field)}`"
    return f"| `{key(field)}` | {values} | {otherwise} | {says} |"


def default(field: str) -> str:
    """The default as TOML has it."""
    return json.dumps(getattr(DEFAULTS, field))


def table(text: str, title: str, rows: list[str]) -> str:
    """The page with ``rows`` in the place of those of the same names below a heading."""
    names = {row.split("`")[1] for row in rows}
    start = text.index(title)
    end = text.find("\n#", start + len(title)) % (len(text) + 1)
    lines = text[start:end].split("\n")
    old = [at for at, line in enumerate(lines) if _named(line) in names]
    first = old[0] if old else max(at for at, line in enumerate(lines) if line.startswith("|")) + 1
    kept = [line for at, line in enumerate(lines) if at not in old]
    return text[:start] + "\n".join([*kept[:first], *rows, *kept[first:]]) + text[end:]


def _named(line: str) -> str:
    found = re.match(r"\| `([\w-]+)` \|", line)
    return found[1] if found else ""


def project_page(text: str) -> str:
    """The manual of the project's file."""
    given = [in_defaults(*item) for item in CHOICE_ROWS.items() if "defaults" in item[1].tables]
    text = table(text, "### `[defaults]`", given)
    return table(text, "### `[bundle.NAME]`", [in_bundle(*item) for item in CHOICE_ROWS.items()])


def python_page(text: str) -> str:
    """The page of the Python interface."""
    text = re.sub(r"^`ingot\.compile\(.* -> Bundle`$", signature(), text, flags=re.MULTILINE)
    return table(text, "`ingot.compile(", [in_python(*item) for item in CHOICE_ROWS.items()])


def signature() -> str:
    """The signature of ``ingot.compile``, without types."""
    parts: list[str] = []
    for each in inspect.signature(ingot.compile).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        given = "" if each.default is each.empty else f"={each.default!r}".replace("'", '"')
        parts.append(f"{each.name}{given}")
    return f"`ingot.compile({', '.join(parts)}) -> Bundle`"


def schema(row: OptionRow, *, is_record: bool, value: object) -> dict[str, Any]:
    """What a value is; a record that leaves the default out has the others."""
    says = row.meaning
    left_out = is_record and row.recorded == "unless default"
    if left_out:
        default_text = json.dumps(value) if row.value_type == "flag" else value
        says += f"; absent where {'there are none' if row.is_many else f'it is `{default_text}`'}"
    words = [word for word in row.words if not (left_out and word == value)]
    if row.is_many:
        return {"description": says, "type": "array", "items": {"type": "string"}}
    kind = "boolean" if row.value_type == "flag" else "string"
    return {"description": says, **({"enum": words} if words else {"type": kind})}


def with_choices(node: object) -> Any:
    """A schema whose objects that describe a choice describe all of them."""
    if isinstance(node, list):
        return [with_choices(each) for each in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    described = cast("dict[str, Any]", node)
    return _with_choices({name: with_choices(each) for name, each in described.items()})


def _with_choices(node: dict[str, Any]) -> dict[str, Any]:
    if {"strip", "planner"} <= node.get("properties", {}).keys():
        is_record = "output" not in node["properties"]
        made = {
            field: schema(row, is_record=is_record, value=getattr(DEFAULTS, field))
            for field, row in CHOICE_ROWS.items()
        }
        properties = {
            name: each for name, each in node["properties"].items() if name not in CHOICE_ROWS
        }
        at = min(
            list(node["properties"]).index(name)
            for name in CHOICE_ROWS
            if name in node["properties"]
        )
        items = list(properties.items())
        node["properties"] = dict([*items[:at], *made.items(), *items[at:]])
        required = [name for name in node["required"] if name not in CHOICE_ROWS]
        needed = [
            field
            for field, row in CHOICE_ROWS.items()
            if row.recorded != "unless default" or not is_record
        ]
        node["required"] = [*required, *needed]
    return node


def schema_file(text: str) -> str:
    """A file of schemas."""
    return json.dumps(with_choices(json.loads(text)), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.pages
@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("project-file.md", project_page),
        ("python.md", python_page),
        ("json/common.json", schema_file),
        ("json/query.json", schema_file),
    ],
)
def test_rows(path: str, made: Any, *, bless: bool) -> None:
    """A page has the rows."""
    file: Path = DOCS / path
    text = file.read_text(encoding="utf-8")
    if bless:
        file.write_text(made(text), encoding="utf-8")
    assert made(file.read_text(encoding="utf-8")) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("table", ["project", "defaults", "model", "bundle"])
def test_the_manual_has_every_key(table: str) -> None:
    """Each table of the project's file has a row for each option that it may have."""
    text = (DOCS / "project-file.md").read_text(encoding="utf-8")
    title = f"### `[{table}]`" if table in ("project", "defaults") else f"### `[{table}.NAME]`"
    section = text.split(title, 1)[1].split("\n#", 1)[0]
    told = {_named(line) for line in section.split("\n")}
    assert told >= {key(field) for field, row in ROWS.items() if table in row.tables}


def test_the_page_of_python_has_every_argument() -> None:
    """By its name, before what it says."""
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    section = text.split("`ingot.compile(", 1)[1].split("\n#", 1)[0]
    told = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(told))) >= set(ROWS)
