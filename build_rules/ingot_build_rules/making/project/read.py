"""Reads a tree of tables as a project and fills in defaults; every mistake is found before one
error lists them all.

In: the tree of ``ingot.toml`` or the one that ``ingot.Project`` makes. Out: ``ProjectModel``. Not
done here: single tables (``tables``), references (``references``), files (``expand``).
"""

from __future__ import annotations

from collections.abc import Collection

from ingot_build_rules.making.options.compile_options import HOST
from ingot_build_rules.making.options.export_rows import FIELD_ROWS, NOTHING_SAID, ExportFields
from ingot_build_rules.making.options.option_rows import GENERAL, ROWS, by_field, given_options, key
from ingot_build_rules.making.project.model import (
    OF_THE_MODEL,
    STEM,
    BundleSpec,
    ExportSpec,
    ModelSpec,
    ProjectModel,
    TargetSpec,
    TestSpec,
)
from ingot_build_rules.making.project.outputs import report_outputs
from ingot_build_rules.making.project.problems import Findings
from ingot_build_rules.making.project.references import check_references
from ingot_build_rules.making.project.tables import Tables, Values, read_tables
from ingot_build_rules.making.project.toml_text import Tree
from ingot_compiler.backends.target_forms import target_text

RELATIVE_TOLERANCE = 1e-4
"""The share of the largest magnitude: what the self-check allows one f32 kernel."""


def read_tree(tree: Tree, findings: Findings) -> ProjectModel:
    """Return the project that ``tree`` declares; ``findings`` may hold problems already.

    Raises:
        UserError: everything that is wrong with it.
    """
    tables = read_tables(tree, findings)
    check_references(tables, findings)
    findings.raise_all()
    project = _make_project(tables, findings)
    report_outputs(project, findings)
    findings.raise_all()
    return project


def _make_project(tables: Tables, findings: Findings) -> ProjectModel:
    """All values are right here, and all that must be there is."""
    settings, defaults = tables.settings["project"], tables.settings["defaults"]
    many = tables.groups["bundle"]
    return ProjectModel(
        name=settings.get("name", ""),
        cache=settings.get("cache"),
        cache_max=settings.get("cache-max"),
        default_targets=settings.get("default-targets", ()),
        targets=tuple(_target(*item) for item in _lined("target", tables, findings)),
        models=tuple(_model(*item, defaults) for item in _lined("model", tables, findings)),
        bundles=tuple(
            _bundle(*item, {**settings, **defaults}, many)
            for item in _lined("bundle", tables, findings)
        ),
        exports=tuple(_export(*item) for item in _lined("export", tables, findings)),
        tests=tuple(_test(*item) for item in _lined("test", tables, findings)),
    )


def _lined(kind: str, tables: Tables, findings: Findings) -> list[tuple[str, int, Values]]:
    """The tables of a kind, sorted: name, line, values."""
    found = sorted(tables.named[kind].items())
    return [(name, findings.locate((kind, name)).line, values) for name, values in found]


def _target(name: str, line: int, values: Values) -> TargetSpec:
    return TargetSpec(name, values.get("target") or target_text(HOST, values), line)


def _model(name: str, line: int, values: Values, defaults: Values) -> ModelSpec:
    said = {**defaults, **values}
    shapes, other_shapes = said.get(key("shapes"), ()), said.get(key("other_shapes"), GENERAL)
    return ModelSpec(name, values["source"], shapes, other_shapes, line)


def _bundle(
    name: str, line: int, values: Values, above: Values, many: Collection[str]
) -> BundleSpec:
    """``above``: what stands above all bundles; of what models say, too, these have it."""
    file = f"{name}/{STEM}" if name in many else name
    output = values.get("output", f"dist/{file}.ingot")
    said = {
        field: values.get(key(field), default)
        if "model" in ROWS[field].tables
        else values.get(key(field), above.get(key(field), default))
        for field, default in by_field(OF_THE_MODEL).items()
    }
    return BundleSpec(name, values["model"], output, given_options(said), line)


def _export(name: str, line: int, values: Values) -> ExportSpec:
    return ExportSpec(
        name,
        values["bundle"],
        values["kind"],
        values["output"],
        ExportFields._make(
            values.get(FIELD_ROWS[field].key, default)
            for field, default in NOTHING_SAID._asdict().items()
        ),
        line=line,
    )


def _test(name: str, line: int, values: Values) -> TestSpec:
    return TestSpec(
        name,
        values["bundle"],
        inputs=values["inputs"],
        outputs=values["outputs"],
        relative_tolerance=values.get("tolerance", RELATIVE_TOLERANCE),
        absolute_tolerance=values.get("absolute-tolerance", 0.0),
        threads=values.get("threads", 1),
        executor=values.get("executor", "aot"),
        line=line,
    )
