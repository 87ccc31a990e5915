"""A project as plain values, for ``--json``.

In: a project. Out: dicts, lists, texts and numbers, always in the same order. Not done here:
printing.
"""

from __future__ import annotations

from typing import Any, cast

from ingot_build_rules.making.options.export_rows import FIELD_ROWS
from ingot_build_rules.making.options.option_rows import ROWS, ValueType, by_field
from ingot_build_rules.making.project.model import (
    BundleSpec,
    ExportSpec,
    ModelSpec,
    ProjectModel,
    TestSpec,
)


def plain(project: ProjectModel) -> dict[str, Any]:
    """Return all of ``project`` but its lines; tables are keyed by name."""
    return {
        "name": project.name,
        "cache": project.cache,
        "cache_max": project.cache_max,
        "default_targets": list(project.default_targets),
        "targets": {spec.name: spec.text for spec in project.targets},
        "models": {spec.name: _model(spec) for spec in project.models},
        "bundles": {spec.name: _bundle(spec) for spec in project.bundles},
        "exports": {spec.name: _export(spec) for spec in project.exports},
        "tests": {spec.name: _test(spec) for spec in project.tests},
    }


def _model(spec: ModelSpec) -> dict[str, Any]:
    return {
        "source": spec.source,
        "shapes": [dict(profile) for profile in spec.shapes],
        "other_shapes": spec.other_shapes,
    }


def _bundle(spec: BundleSpec) -> dict[str, Any]:
    return {
        "model": spec.model,
        **{
            name: _option(ROWS[name].value_type, value)
            for name, value in by_field(spec.options).items()
        },
        "output": spec.output,
    }


def _option(value_type: ValueType, value: Any) -> Any:
    if value is None or value_type in ("flag", "text"):
        return value
    if value_type == "pairs":
        return dict(value)
    # A place is two texts, a profile a table of them.
    return (
        [*value]
        if value_type == "texts"
        else [*map(dict if value_type == "shapes" else list, value)]
    )


def _export(spec: ExportSpec) -> dict[str, Any]:
    return {
        "bundle": spec.bundle,
        "kind": spec.kind,
        "output": spec.output,
        **{
            row.json or row.key.replace("-", "_"): _as_json(field, getattr(spec.fields, field))
            for field, row in FIELD_ROWS.items()
            if row.key
        },
    }


def _as_json(field: str, value: Any) -> Any:
    if field == "shapes":
        return [dict(profile) for profile in value]
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def _test(spec: TestSpec) -> dict[str, Any]:
    return {
        "bundle": spec.bundle,
        "inputs": spec.inputs,
        "outputs": spec.outputs,
        "tolerance": spec.relative_tolerance,
        "absolute_tolerance": spec.absolute_tolerance,
        "threads": spec.threads,
        "executor": spec.executor,
    }
