"""Every table and key that a project file may have: the one list that reading, overriding and the
manual follow.

In: nothing. Out: ``TABLES``. Not done here: checking values (``values``), what they refer to
(``read``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ingot_build_rules.compilation.options import ALL_PLANNERS
from ingot_build_rules.rules.choices import ROWS, spelling
from ingot_build_rules.rules.compile_options import OTHER_SHAPES
from ingot_build_rules.rules.export_rows import EXPORT_ROWS, FIELD_ROWS
from ingot_runtime.lazy_dataclass import dataclass

ValueKind = Literal["text", "texts", "count", "number", "flag", "shapes", "pairs", "places"]
EXECUTORS = ("aot", "vm")


@dataclass(frozen=True, slots=True)
class TableKey:
    """One key. ``example`` is a value as the file would have it; ``choices`` are all texts allowed
    (pairs: as values)."""

    name: str
    kind: ValueKind
    example: str
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table; a ``named`` one is written ``[kind.NAME]``, any number of times."""

    keys: tuple[TableKey, ...]
    named: bool = True

    def key(self, name: str) -> TableKey | None:
        """Return the key of that name."""
        return next((key for key in self.keys if key.name == name), None)


_TARGETS = TableKey("targets", "texts", '["x86-64-v3"]')
_PLANNER = TableKey("planner", "text", '"best"', choices=ALL_PLANNERS)
_PLUGINS = TableKey("plugins", "texts", '["package.module:TARGET"]')
_SHAPE = TableKey("shape", "shapes", '{ x = "1x3x224x224" }')

_CHOICES = {
    field: TableKey(
        spelling(field), "text" if row.words else "flag", row.example, choices=row.words
    )
    for field, row in ROWS.items()
}
_OTHER_SHAPES = TableKey("other-shapes", "text", '"refuse"', choices=OTHER_SHAPES)

TABLES: Mapping[str, Table] = {
    "project": Table(
        (
            TableKey("name", "text", '"camera"'),
            TableKey("cache", "text", '".ingot/cache"'),
            TableKey("cache-max", "text", '"5GB"'),
            TableKey("default-targets", "texts", '["a"]'),
            _PLUGINS,
        ),
        named=False,
    ),
    "defaults": Table(
        (
            _TARGETS,
            _PLANNER,
            *(key for field, key in _CHOICES.items() if ROWS[field].has_default),
            _SHAPE,
            _OTHER_SHAPES,
        ),
        named=False,
    ),
    "target": Table(
        (
            TableKey("target", "text", '"x86-64-v4"'),
            TableKey("level", "text", '"x86-64-v4"'),
            TableKey("cpu", "text", '"znver4"'),
            TableKey("features", "texts", '["avx512vnni"]'),
        )
    ),
    "model": Table(
        (TableKey("source", "text", '"models/a.onnx"', required=True), _SHAPE, _OTHER_SHAPES)
    ),
    "bundle": Table(
        (
            TableKey("model", "text", '"a"', required=True),
            _TARGETS,
            _PLANNER,
            *_CHOICES.values(),
            TableKey("tuning", "text", '"a.tune"'),
            TableKey("pools", "texts", '["fast=200kB", "slow"]'),
            TableKey("output", "text", '"dist/a.ingot"'),
            TableKey("devices", "pairs", '{ acc = "null:0" }'),
            TableKey("place", "places", '{ "/layer1/*" = "acc" }'),
            TableKey("ops", "pairs", '{ "my.domain::Foo" = "foo.ingot-text" }'),
            _PLUGINS,
            _SHAPE,
            _OTHER_SHAPES,
        )
    ),
    "export": Table(
        (
            TableKey("bundle", "text", '"a"', required=True),
            TableKey("kind", "text", '"library"', required=True, choices=tuple(EXPORT_ROWS)),
            TableKey("output", "text", '"dist/a"', required=True),
            *(
                TableKey(row.key, row.key_type, row.example)
                for row in FIELD_ROWS.values()
                if row.key
            ),
        )
    ),
    "test": Table(
        (
            TableKey("bundle", "text", '"a"', required=True),
            TableKey("inputs", "text", '"data/a.npz"', required=True),
            TableKey("outputs", "text", '"data/a.out.npz"', required=True),
            TableKey("tolerance", "number", "1e-4"),
            TableKey("absolute-tolerance", "number", "0.0"),
            TableKey("threads", "count", "1"),
            TableKey("executor", "text", '"aot"', choices=EXECUTORS),
        )
    ),
}
