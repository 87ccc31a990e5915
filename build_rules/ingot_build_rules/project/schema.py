"""Every table and key that a project file may have: the one list that reading, overriding and the manual follow.

In: nothing. Out: ``TABLES``. Not done here: checking values (``values``), what they refer to (``read``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ingot_build_rules.compilation.options import ALL_PLANNERS, DEVICE_KINDS

ValueKind = Literal["text", "texts", "count", "number", "shapes", "pairs"]
EXECUTORS = ("aot", "vm")


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``example`` is a value as the file would have it; ``choices`` are all texts allowed (pairs: as values)."""

    name: str
    kind: ValueKind
    example: str
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table; a ``named`` one is written ``[kind.NAME]``, any number of times."""

    keys: tuple[Key, ...]
    named: bool = True

    def key(self, name: str) -> Key | None:
        """Return the key of that name."""
        return next((key for key in self.keys if key.name == name), None)


_TARGETS = Key("targets", "texts", '["x86-64-v3"]')
_PLANNER = Key("planner", "text", '"best"', choices=ALL_PLANNERS)
_SHAPE = Key("shape", "shapes", '{ x = "1x3x224x224" }')

TABLES: Mapping[str, Table] = {
    "project": Table(
        (
            Key("name", "text", '"camera"'),
            Key("cache", "text", '".ingot/cache"'),
            Key("default-targets", "texts", '["a"]'),
            Key("plugins", "texts", '["package.module:TARGET"]'),
        ),
        named=False,
    ),
    "defaults": Table((_TARGETS, _PLANNER, _SHAPE), named=False),
    "target": Table((Key("target", "text", '"x86-64-v4"', required=True),)),
    "model": Table((Key("source", "text", '"models/a.onnx"', required=True), _SHAPE)),
    "bundle": Table(
        (
            Key("model", "text", '"a"', required=True),
            _TARGETS,
            _PLANNER,
            Key("output", "text", '"dist/a.ingot"'),
            Key("devices", "pairs", '{ acc = "opencl" }', choices=DEVICE_KINDS),
            Key("place", "pairs", '{ "/layer1/*" = "acc" }'),
        )
    ),
    "test": Table(
        (
            Key("bundle", "text", '"a"', required=True),
            Key("inputs", "text", '"data/a.npz"', required=True),
            Key("outputs", "text", '"data/a.out.npz"', required=True),
            Key("tolerance", "number", "1e-4"),
            Key("absolute-tolerance", "number", "0.0"),
            Key("threads", "count", "1"),
            Key("executor", "text", '"aot"', choices=EXECUTORS),
        )
    ),
}
