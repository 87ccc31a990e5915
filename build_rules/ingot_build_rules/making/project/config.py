"""``--config PATH=VALUE``: one value of the project file replaced for one command.

In: the tree, texts of the command line. Out: the changed tree and places. Not done here: types,
references (``read``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ingot_build_rules.making.project.lines import Path
from ingot_build_rules.making.project.problems import Place, ProjectProblem, closest, one_of
from ingot_build_rules.making.project.schema import TABLES, ValueKind
from ingot_build_rules.making.project.toml_text import Places, Tree
from ingot_build_rules.making.project.values import dotted, header
from ingot_compiler.ir.errors import UserError
from ingot_runtime.option_ref import OptionRef

_OPTION, _EXAMPLE = OptionRef("config"), OptionRef("config", "bundle.a.planner=best")


def split_config(texts: Sequence[str]) -> dict[str, str]:
    """Split each ``PATH=VALUE`` at its first ``=`` outside of quotes; of equal paths the last
    counts.

    Raises:
        UserError: a text without ``=``, or without a path.
    """
    config: dict[str, str] = {}
    for text in texts:
        at = _equals_index(text)
        if at in (0, len(text)):
            what, where = ("wrong value of ", _OPTION), ("option ", _OPTION)
            why = f"expected PATH=VALUE, got {text!r}"
            raise UserError(what, where, why, ("write for example: ", _EXAMPLE))
        config[text[:at].strip()] = text[at + 1 :]
    return config


def _equals_index(text: str) -> int:
    """Where the first ``=`` outside of quotes stands; the length of the text where there is
    none."""
    quote = ""
    for at, letter in enumerate(text):
        if letter == "=" and not quote:
            return at
        if letter in "\"'":
            quote = "" if quote == letter else quote or letter
    return len(text)


def override(
    tree: Tree, places: Places, config: Mapping[str, str]
) -> tuple[Tree, Places, list[ProjectProblem]]:
    """Return the tree and the places with each value of ``config`` in them, and the problems of
    unknown paths."""
    problems: list[ProjectProblem] = []
    for text, value in config.items():
        place = Place(0, str(OptionRef("config", f"{text}={value}")))
        found = _resolve(text, tree, place)
        if isinstance(found, ProjectProblem):
            problems.append(found)
            continue
        path, kind = found
        tree = _replaced(tree, path, _typed(kind, value, inside=_is_inside(path)))
        kept = {key: where for key, where in places.items() if key[: len(path)] != path}
        places = kept | {path: place}
    return tree, places, problems


def _resolve(text: str, tree: Tree, place: Place) -> tuple[Path, ValueKind] | ProjectProblem:
    """Follow a dotted path through the schema: table, name if the table has names, key, and what is
    in it."""
    path = _split(text)
    if not path:
        what, why = f"{text!r} is no path", "expected keys with dots between"
        return ProjectProblem(place, what, why, f"write for example: {_EXAMPLE}")
    table = TABLES.get(path[0])
    if table is None:
        return _unknown(path, 0, TABLES, place)
    declared = _table(tree, path[0])
    if table.named and (len(path) < 2 or path[1] not in declared):
        return _unknown(path, 1, declared, place)
    position = 2 if table.named else 1
    key = table.key(path[position]) if len(path) > position else None
    if key is None:
        return _unknown(path, position, [key.name for key in table.keys], place)
    depth_max = position + (2 if key.kind in ("shapes", "pairs", "places") else 1)
    if len(path) > depth_max:
        what, why = f"{text!r} is no path", f"{dotted(path[:depth_max])} holds a value, no keys"
        return ProjectProblem(place, what, why, "shorten it")
    return path, key.kind


def _unknown(
    path: Path, position: int, choices: Mapping[str, object] | list[str], place: Place
) -> ProjectProblem:
    around = header(path[:position]) if position else "the project"
    if len(path) <= position:
        what, do = f"{dotted(path)!r} names no value", "add one of these to the path"
    else:
        what, close = (
            f"nothing is called {path[position]!r} in {around}",
            closest(path[position], choices),
        )
        do = "choose one of these"
        if close is not None:
            do = f"did you mean {dotted((*path[:position], close, *path[position + 1 :]))}?"
    return ProjectProblem(place, what, one_of(choices), do)


def _split(text: str) -> Path:
    """Read a dotted key as TOML does; empty if it is none."""
    try:
        tree: Any = {} if "\n" in text else tomllib.loads(f"{text} = 0")
    except ValueError:
        tree = {}
    path: Path = ()
    while isinstance(tree, dict) and tree:
        part, tree = next(iter(cast("dict[str, Any]", tree).items()))
        path = (*path, part)
    return path


def _is_inside(path: Path) -> bool:
    """Whether the path leads into a value of its own, such as one shape of ``shape``."""
    return len(path) > (3 if TABLES[path[0]].named else 2)


def _typed(kind: ValueKind, text: str, *, inside: bool) -> object:
    """Read the value as its key wants it; what fits nothing stays a text, and is refused as such
    later."""
    if kind == "text" or (inside and not text.startswith("[")):
        return text
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        value = text
    if kind == "texts" and not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    return value


def _replaced(tree: Tree, path: Path, value: object) -> dict[str, Any]:
    return {
        **tree,
        path[0]: value if len(path) == 1 else _replaced(_table(tree, path[0]), path[1:], value),
    }


def _table(tree: Tree, name: str) -> Tree:
    """Return a table of the tree; an empty one where there is none, or something else, which
    reading will refuse."""
    below: object = tree.get(name, {})
    return cast("Tree", below) if isinstance(below, Mapping) else {}
