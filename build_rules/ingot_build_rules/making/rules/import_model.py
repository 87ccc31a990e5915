"""Rule ``import_model``: a model's bytes to ImportedModel, its weights and its names.

In: the digest of a model file and where it is, sizes for inputs, placement marks. Out:
``Imported``. Not done here: parsing itself (``ingot_compiler.frontend``), types.

The model knows its constants by number: new weights with the same facts leave it as it was.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, RuleContext
from ingot_build_rules.making.values.custom_ops import op_file
from ingot_build_rules.making.values.default_input import DefaultInput
from ingot_build_rules.making.values.model_file import FileState, read_model
from ingot_compiler.frontend.model.external_data import read_external_file, safe_external_path
from ingot_compiler.ir.errors import ModelError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.frontend.model.imported import ImportedModel
    from ingot_compiler.ir.graph import ConstantSource, Names


@dataclass(frozen=True, slots=True)
class ImportInputs:
    """``source``: sha256 of the model file. It is at ``path`` in the ``state`` that was seen when
    it was hashed, or it is ``content``; ``name`` is what the user calls it in errors. ``max_bytes``
    refuses, and changes no result. ``ops``: the user's ops and the digests of the files that define
    them, which ``op_files`` are, in the same order."""

    source: str
    shapes: tuple[tuple[tuple[str, str], ...], ...]
    place: tuple[tuple[str, str], ...]
    name: str
    path: str = ""
    state: FileState | None = None
    content: Artifact[memoryview] | None = None
    max_bytes: int | None = None
    strict_dims: bool = False
    ops: tuple[tuple[str, str], ...] = ()
    op_files: tuple[tuple[str, Artifact[memoryview]], ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """``weights``: bytes of the constants by their number; ``external``: locations of the files
    beside the model that were read."""

    model: Artifact[ImportedModel]
    names: Artifact[Names]
    weights: tuple[Artifact[memoryview], ...]
    external: tuple[str, ...] = ()
    defaults: tuple[DefaultInput, ...] = ()


_SMALL_BYTES_MAX = 64


class _Weights:
    """Numbers constants in the order in which they are first met; equal bytes have one number."""

    def __init__(self, context: RuleContext) -> None:
        self._context = context
        self._numbers: dict[str, int] = {}
        self._small: dict[bytes, str] = {}
        self.artifacts: list[Artifact[memoryview]] = []

    def write(self, content: memoryview) -> str:
        if content.nbytes > _SMALL_BYTES_MAX:
            return self._kept(content)
        # Quantized models have hundreds of equal scales and zero points: each is looked for once.
        small = bytes(content)
        if small not in self._small:
            self._small[small] = self._kept(content)
        return self._small[small]

    def _kept(self, content: memoryview) -> str:
        artifact = self._context.keep_bytes(content)
        if artifact.digest not in self._numbers:
            self._numbers[artifact.digest] = len(self.artifacts)
            self.artifacts.append(artifact)
        return str(self._numbers[artifact.digest])


class _External:
    """Reads files beside the model, and notes which."""

    def __init__(self, context: RuleContext, path: str) -> None:
        self._context = context
        self._folder = os.path.dirname(path) if path else None
        self.locations: set[str] = set()

    def read(self, location: str, offset_bytes: int, size_bytes: int | None) -> memoryview:
        if self._folder is None:
            # There is no folder that the location could be relative to; the current one would be a
            # guess.
            raise ModelError(
                "external data of a model that has no folder",
                where=f"location {location!r}",
                why="the model was given as bytes or as a message; expected a path, which its "
                "external data lies beside",
                do="give the path of the .onnx file, or a model with its weights inside",
            )
        content = read_external_file(Path(self._folder), location, offset_bytes, size_bytes)
        self._context.note(location)
        self.locations.add(location)
        return content


def _compute(context: RuleContext, inputs: ImportInputs) -> Imported:
    from ingot_compiler.frontend import import_model as frontend
    from ingot_compiler.frontend.model.place_marks import disagreements
    from ingot_compiler.ir.sizes.given_shape import read_shape

    weights, external = _Weights(context), _External(context, inputs.path)
    content = inputs.content.value() if inputs.content else read_model(inputs.path, inputs.state)
    shapes = [{name: read_shape(text) for name, text in each} for each in inputs.shapes]
    files = [
        op_file(op, file, bytes(kept.value()))
        for (op, _), (file, kept) in zip(inputs.ops, inputs.op_files, strict=True)
    ]
    with _errors_name(inputs.name):
        model, names = frontend.import_model(
            content, external.read, weights.write, shapes, inputs.place, inputs.max_bytes,
            strict_dims=inputs.strict_dims, op_files=files,
        )  # fmt: skip
    for text in disagreements([name for name, _ in names.nodes], inputs.place):
        context.warn(text)
    return Imported(
        context.keep(model),
        context.keep(names),
        tuple(weights.artifacts),
        tuple(sorted(external.locations)),
        tuple(_default(weights, *default) for default in model.defaults),
    )


def _default(weights: _Weights, position: int, source: ConstantSource) -> DefaultInput:
    shape = tuple(size for size in source.type.shape if isinstance(size, int))
    return DefaultInput(position, shape, weights.artifacts[int(source.weight)])


@contextmanager
def _errors_name(name: str) -> Generator[None]:
    """The frontend sees bytes; the user gave them a name."""
    try:
        yield
    except IngotError as error:
        start, comma, place = error.where.partition(", ")
        if start != "model file":
            raise
        where = f"model file {name!r}{comma}{place}"
        raise type(error)(error.what, where, error.why, error.do) from error


def _resolve(files: FileDigests, inputs: ImportInputs, location: str) -> str:
    """The digest of an external file: never of one outside of the model's folder, whatever a record
    says."""
    if not inputs.path:
        return ""
    try:
        return files.digest(str(safe_external_path(Path(os.path.dirname(inputs.path)), location)))
    except ModelError:
        return ""


IMPORT_MODEL = Rule(
    "import_model",
    1,
    ("source", "shapes", "place", "strict_dims", "ops"),
    _compute,
    _resolve,
    reads_files=True,
)
