"""Project files at random: any way of writing one means the same, and no text breaks the reader."""

from __future__ import annotations

import fnmatch
import json
import tomllib
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.project_harness import lister

import ingot
from ingot_build_rules.making.project.lines import find_lines
from ingot_build_rules.making.project.model import ProjectModel
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.making.project.plain import plain
from ingot_build_rules.making.project.wildcards import find_files
from ingot_runtime.ingot_error import IngotError

Value = str | float | list[int] | list[str] | dict[str, "Value"]
Table = dict[str, Value]
Tables = dict[str, dict[str, Table]]

NAME = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,6}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
TARGETS = st.lists(
    st.sampled_from(["native", "x86-64-v2", "x86-64-v3", "aarch64"]), min_size=1, max_size=3
)
SIZES = st.lists(st.integers(0, 9), max_size=4)


def attempt(make: Callable[[], ProjectModel]) -> ProjectModel | IngotError:
    """Return the project, or the error."""
    try:
        return make()
    except IngotError as error:
        return error


@st.composite
def declarations(draw: st.DrawFn) -> Tables:
    """Tables of a correct project, as the file's keys."""
    models = draw(st.lists(NAME, min_size=1, max_size=3, unique=True))
    bundles = draw(st.lists(NAME, min_size=1, max_size=4, unique=True))
    tables: Tables = {"model": {}, "bundle": {}, "test": {}}
    for name in models:
        shapes: dict[str, Value] = {**draw(st.dictionaries(TEXT, SIZES, max_size=2))}
        tables["model"][name] = {"source": f"m/{name}.onnx", "shape": shapes}
    for name in bundles:
        values: Table = {"model": draw(st.sampled_from(models)), "place": {}}
        if draw(st.booleans()):
            values |= {
                "targets": draw(TARGETS),
                "planner": draw(st.sampled_from(["best", "best_fit"])),
            }
        values["place"] = dict.fromkeys(draw(st.lists(TEXT, max_size=3, unique=True)), "host")
        tables["bundle"][name] = values
    for name in draw(st.lists(NAME, max_size=2, unique=True)):
        files = {"inputs": draw(TEXT) + ".npz", "outputs": draw(TEXT) + ".npz"}
        number = draw(st.floats(0, 1e30, allow_nan=False))
        tables["test"][name] = {
            "bundle": draw(st.sampled_from(bundles)),
            **files,
            "tolerance": number,
        }
    return tables


def write(tables: Tables, draw: Random) -> str:
    """Write the tables as TOML, in any order and any of its spellings."""
    headers = [(kind, name) for kind, named in tables.items() for name in named]
    draw.shuffle(headers)
    lines: list[str] = []
    for kind, name in headers:
        lines += draw.choice([[], [""], ["# [x]", "  "]])
        lines.append(
            f"[{kind}{draw.choice(['.', ' . '])}{quoted(name, draw)}]{draw.choice(['', ' # a = 1'])}"
        )
        values = list(tables[kind][name].items())
        draw.shuffle(values)
        for key, value in values:
            if isinstance(value, dict) and draw.random() < 0.5:
                lines += [
                    f"{key} . {quoted(part, draw)} = {spelled(inner, draw)}"
                    for part, inner in value.items()
                ]
            else:
                lines.append(f"{quoted(key, draw)}={spelled(value, draw)}")
    return draw.choice(["\n", "\r\n"]).join([*lines, ""])


def quoted(name: str, draw: Random) -> str:
    """A key, bare where it can be."""
    bare = all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return name if bare and draw.random() < 0.7 else json.dumps(name, ensure_ascii=False)


def spelled(value: Value, draw: Random) -> str:
    """A value; inline tables on one line, lists over several."""
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(
                f"{quoted(key, draw)} = {spelled(item, draw)}" for key, item in value.items()
            )
            + " }"
        )
    if isinstance(value, list):
        end = (
            draw.choice(["", "\n", " # ]\n  "])
            if not any(isinstance(item, dict) for item in value)
            else ""
        )
        return "[" + "".join(f"{spelled(item, draw)},{end}" for item in value) + "]"
    if isinstance(value, str):
        literal = "'" not in value and draw.random() < 0.5
        return (
            f"'{value}'"
            if literal
            else json.dumps(value, ensure_ascii=draw.random() < 0.5 and value.isascii())
        )
    return repr(value)


@pytest.mark.broad
@settings(max_examples=60)
@given(declarations(), st.randoms(use_true_random=False))
def test_every_spelling_means_what_calls_mean(tables: Tables, draw: Random) -> None:
    """A written file and the same calls of ``ingot.Project`` give equal data, or the same
    complaint."""
    project = ingot.Project()
    for name, values in tables["model"].items():
        project.model(name, **cast("Any", values))
    for name, values in tables["bundle"].items():
        project.bundle(name, **cast("Any", values))
    for name, values in tables["test"].items():
        project.test(name, **cast("Any", values))
    text = write(tables, draw)
    expected, found = attempt(project.freeze), attempt(lambda: parse_project(text, "ingot.toml"))
    if isinstance(expected, IngotError) or isinstance(found, IngotError):
        assert getattr(found, "what", "a project") == getattr(expected, "what", "a project")
        return
    assert found == expected
    assert plain(found) == plain(expected)
    written = text.split("\n")
    specs = [
        *((spec.name, spec.line) for spec in found.models),
        *((spec.name, spec.line) for spec in found.bundles),
    ]
    for name, line in [*specs, *((spec.name, spec.line) for spec in found.tests)]:
        assert written[line - 1].startswith("[")
        assert name in written[line - 1]


VALID = """\
[defaults]
targets = ["x86-64-v3"]
[model.a]
source = 'a*.onnx'
shape.x = [1, 2]
[bundle.a]
model = "a"
place = {"/x" = "host"}
[test."a"]
bundle = "a"
inputs = "x{stem}.npz"
outputs = \"\"\"y.npz\"\"\"
"""
PIECES = st.sampled_from([
    *"[]{}=.,#\"'\n\\ ab1-", "[[", "]]", '"""', "'''", "\r\n", "1e9", "true", "nan", "1979-05-27", "\\u0041", "é", "\x00", "model.",
    "[model.b]\n", "source", '= "x"\n', "{stem}", "*",
])  # fmt: skip
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), PIECES), max_size=6)


@settings(max_examples=300)
@given(
    EDITS,
    st.dictionaries(
        st.sampled_from(["bundle.a.planner", "model.a", "a..", "test.a.threads"]),
        PIECES,
        max_size=2,
    ),
)
def test_no_text_breaks_the_reader(
    edits: list[tuple[float, int, str]], config: dict[str, str]
) -> None:
    """Any damage gives a project or an error in four parts; lines are found for whatever TOML
    accepts."""
    text = VALID
    for part, removed, piece in edits:
        at = int(part * len(text))
        text = text[:at] + piece + text[at + removed :]
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        pass
    else:
        find_lines(text)
    found = attempt(lambda: parse_project(text, "ingot.toml", config))
    assert not isinstance(found, IngotError) or (
        found.exit_code in (1, 3) and found.what and found.do
    )


PARTS = st.sampled_from(["a", "b", "ab", ".a", "x.onnx", "a.onnx"])
PATHS = st.sets(st.lists(PARTS, min_size=1, max_size=4).map("/".join), max_size=8)
WILD = st.sampled_from(["*", "a*", "?", "[ab]", "**", "*.onnx", ".*", "a", "b"])


def fits(path: list[str], pattern: list[str]) -> bool:
    """Whether a path matches, by the shortest definition."""
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] == "**":
        return fits(path, pattern[1:]) or (
            not path[0].startswith(".") and len(path) > 1 and fits(path[1:], pattern)
        )
    visible = pattern[0].startswith(".") or not path[0].startswith(".")
    return visible and fnmatch.fnmatchcase(path[0], pattern[0]) and fits(path[1:], pattern[1:])


@settings(max_examples=200)
@given(PATHS, st.lists(WILD, min_size=1, max_size=4))
def test_wildcards_match_as_defined(paths: set[str], parts: list[str]) -> None:
    """The search through folders finds exactly the files that fit, each once, in order, and notes
    its folders."""
    files = [path for path in paths if not any(other.startswith(path + "/") for other in paths)]
    pattern = [*parts[:-1], "**", "*"] if parts[-1] == "**" else parts
    if not any(letter in "".join(parts) for letter in "*?["):
        return
    found = find_files("/".join(parts), lister(files))
    assert [match.path for match in found.matches] == sorted(
        path for path in files if fits(path.split("/"), pattern)
    )
    parents = {path.rpartition("/")[0] or "." for path in (match.path for match in found.matches)}
    assert parents <= set(found.folders)
