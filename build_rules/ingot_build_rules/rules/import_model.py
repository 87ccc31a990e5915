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
from ingot_compiler.frontend.tensor_data import ExternalReader
from ingot_compiler.ir.errors import IngotError, ModelError
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
    try:
        model, names = frontend.import_model(
            opened.content, _external_reader(opened.folder), inputs.store.write, dict(inputs.shapes), inputs.place
        )
    except IngotError as error:
        if error.where != "model file":
            raise
        # The frontend sees bytes; the user gave them a name.
        raise type(error)(error.what, f"model file {opened.name!r}", error.why, error.do) from error
    return Imported(model, names)


def _external_reader(folder: str | None) -> ExternalReader:
    return _refuse_external if folder is None else functools.partial(read_external_file, Path(folder))


def _refuse_external(location: str, _offset_bytes: int, _size_bytes: int | None) -> memoryview:
    """There is no folder that the location could be relative to; the current one would be a guess."""
    raise ModelError(
        "external data of a model that has no folder",
        where=f"location {location!r}",
        why="the model was given as bytes or as a message; expected a path, which its external data lies beside",
        do="give the path of the .onnx file, or a model with its weights inside",
    )


IMPORT_MODEL = Rule("import_model", 1, ("source", "shapes", "place"), _compute)
