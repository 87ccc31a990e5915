"""The tables of a tree, each with its checked values, and which of them stand for many files.

In: the tree, its schema. Out: ``Tables``. Not done here: what names refer to (``references``),
types (``values``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ingot_build_rules.making.project.names import NAME_RULE, is_glob, is_plain
from ingot_build_rules.making.project.problems import Findings, did_you_mean
from ingot_build_rules.making.project.schema import TABLES, Table
from ingot_build_rules.making.project.toml_text import Tree
from ingot_build_rules.making.project.values import describe, header, read_values
from ingot_runtime.lazy_dataclass import dataclass

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tables:
    """``named[kind][name]`` are the right values of ``[kind.name]``; ``settings[kind]`` those of
    ``[kind]``.

    ``groups[kind]``: names that stand for many: models with a glob, bundles of such a model,
    exports and tests of such a bundle.
    """

    named: Mapping[str, Mapping[str, Values]]
    settings: Mapping[str, Values]
    groups: Mapping[str, frozenset[str]]


def read_tables(tree: Tree, findings: Findings) -> Tables:
    """Check every table on its own; what is wrong is noted and left out."""
    for name in tree:
        if name not in TABLES:
            _report_unknown(tree, name, findings)
    named = {
        kind: _read_named(tree, kind, table, findings)
        for kind, table in TABLES.items()
        if table.named
    }
    settings = {
        kind: read_values(findings, (kind,), tree.get(kind, {}), table)
        for kind, table in TABLES.items()
        if not table.named
    }
    return Tables(named, settings, _groups(named))


def _groups(named: Mapping[str, Mapping[str, Values]]) -> dict[str, frozenset[str]]:
    models = named["model"].items()
    globs = (name for name, values in models if is_glob(values.get("source", "")))
    groups = {"model": frozenset(globs)}
    for kind, of in (("bundle", "model"), ("export", "bundle"), ("test", "bundle")):
        many = (name for name, values in named[kind].items() if values.get(of) in groups[of])
        groups[kind] = frozenset(many)
    return groups


def _read_named(tree: Tree, kind: str, table: Table, findings: Findings) -> dict[str, Values]:
    given, named = cast("object", tree.get(kind, {})), header((kind, "NAME"))
    if not isinstance(given, Mapping):
        why, do = f"expected tables {named}, got {describe(given)}", f"write {named}"
        findings.add((kind,), f"{header((kind,))} without a name", why, do)
        return {}
    found: dict[str, Values] = {}
    for name, content in cast("Mapping[str, object]", given).items():
        if table.key(name) and not _is_table(content):
            what, why = f"key {name!r} stands in {header((kind,))}", "expected a name for the table"
            findings.add((kind, name), what, why, f"write {named} above it")
            continue
        if not is_plain(name):
            what, why = f"{name!r} cannot be a name", f"expected {NAME_RULE}"
            findings.add((kind, name), what, why, "choose another name")
        found[name] = read_values(findings, (kind, name), content, table)
    return found


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _report_unknown(tree: Tree, name: str, findings: Findings) -> None:
    known = ", ".join(
        header((kind, "NAME") if table.named else (kind,)) for kind, table in TABLES.items()
    )
    owners = [kind for kind, table in TABLES.items() if table.key(name)]
    if owners and not isinstance(tree[name], Mapping | list):
        what, do = (
            f"key {name!r} stands outside of every table",
            f"write it below {header((owners[0],))}",
        )
    else:
        what, do = f"unknown table {header((name,))}", did_you_mean(name, TABLES, "remove it")
    findings.add((name,), what, f"expected {known}", do)
