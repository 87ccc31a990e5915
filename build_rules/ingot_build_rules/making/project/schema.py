"""Every table and key that a project file may have: the one list that reading, overriding and the
manual follow.

In: nothing. Out: ``TABLES``. Not done here: checking values (``values``), what they refer to
(``read``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ingot_build_rules.making.options.export_rows import EXPORT_ROWS, FIELD_ROWS
from ingot_build_rules.making.options.option_rows import ROWS, key
from ingot_build_rules.making.options.options import words_of
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


def _options(table: str) -> tuple[TableKey, ...]:
    """The options of a compilation that a table may have."""
    return tuple(
        TableKey(key(field), row.value_type, row.example, choices=words_of(field))
        for field, row in ROWS.items()
        if table in row.tables
    )


TABLES: Mapping[str, Table] = {
    "project": Table(
        (
            TableKey("name", "text", '"camera"'),
            TableKey("cache", "text", '".ingot/cache"'),
            TableKey("cache-max", "text", '"5GB"'),
            TableKey("default-targets", "texts", '["a"]'),
            *_options("project"),
        ),
        named=False,
    ),
    "defaults": Table(_options("defaults"), named=False),
    "target": Table(
        (
            TableKey("target", "text", '"x86-64-v4"'),
            TableKey("level", "text", '"x86-64-v4"'),
            TableKey("cpu", "text", '"znver4"'),
            TableKey("features", "texts", '["avx512vnni"]'),
        )
    ),
    "model": Table(
        (TableKey("source", "text", '"models/a.onnx"', required=True), *_options("model"))
    ),
    "bundle": Table(
        (
            TableKey("model", "text", '"a"', required=True),
            TableKey("output", "text", '"dist/a.ingot"'),
            *_options("bundle"),
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
