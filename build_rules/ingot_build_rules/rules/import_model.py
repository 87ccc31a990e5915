"""Rule ``import_model``: ModelSource to ImportedModel and its names.

In: a model's bytes by digest, sizes for inputs, placement marks. Out: ``Imported``. Not done here: parsing itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from ingot_build_rules.engine.rule import Context, Rule
from ingot_build_rules.rules.constant_store import ConstantStore
from ingot_build_rules.rules.model_source import ModelSource, OpenedModel
from ingot_compiler.frontend import import_model as frontend
from ingot_compiler.frontend.external_data import read_external_file
from ingot_compiler.frontend.imported import ImportedModel
from ingot_compiler.ir.graph import Names


@dataclass(frozen=True, slots=True)
class ImportInputs:
    """``opened`` and ``store`` are where the bytes are; ``source`` says which bytes."""

    source: ModelSource
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    place: tuple[tuple[str, str], ...]
    opened: OpenedModel
    store: ConstantStore


@dataclass(frozen=True, slots=True)
class Imported:
    """The model without names, and the names beside it."""

    model: ImportedModel
    names: Names


def _compute(_: Context, inputs: ImportInputs) -> Imported:
    opened = inputs.opened
    model, names = frontend.import_model(
        opened.content,
        functools.partial(read_external_file, Path(opened.folder)),
        inputs.store.write,
        dict(inputs.shapes),
        inputs.place,
    )
    return Imported(model, names)


IMPORT_MODEL = Rule("import_model", 1, ("source", "shapes", "place"), _compute)
