"""The models in a folder and below it, with names for their bundles.

In: a folder. Out: ``FoundModels``: what can be a bundle, and what was left out and why. Not done
here: whether every node is supported (a build says so), the project file (``project_draft``).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ingot_build_rules.making.project.names import is_glob, is_plain
from ingot_build_rules.making.stages.kind_of_file import OTHER_KINDS
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass

_SKIPPED = {"dist", "build", "node_modules", "__pycache__", "site-packages"}
_NO_NAME = {"model", "network"}
"""Stems that say less than the folder does."""
_EXTERNAL = 1  # TensorProto.EXTERNAL


@dataclass(frozen=True, slots=True)
class ModelOfFolder:
    """``path`` is relative to the folder, with ``/``; ``inputs``: name and sizes of each, a name
    or ``?`` for one that is open. ``size_bytes`` counts external data."""

    name: str
    path: str
    size_bytes: int
    inputs: tuple[tuple[str, tuple[int | str, ...]], ...]

    def inputs_text(self) -> str:
        """Return the inputs for people: ``image[1, 3, 640, 640]``."""
        return ", ".join(f"{name}[{', '.join(map(str, sizes))}]" for name, sizes in self.inputs)


@dataclass(frozen=True, slots=True)
class FoundModels:
    """Models in the order of their paths; ``left_out``: path and reason."""

    models: tuple[ModelOfFolder, ...]
    left_out: tuple[tuple[str, str], ...]

    def plain(self) -> dict[str, Any]:
        """Return the models as plain values, for JSON."""
        models = [
            {
                "name": model.name,
                "path": model.path,
                "size_bytes": model.size_bytes,
                "inputs": [{"name": name, "shape": list(sizes)} for name, sizes in model.inputs],
            }
            for model in self.models
        ]
        left = [{"path": path, "reason": reason} for path, reason in self.left_out]
        return {"models": models, "left_out": left}


def find_models(folder: str) -> FoundModels:
    """Look at every file that may be a model; hidden folders and results of builds are passed
    over."""
    found: list[ModelOfFolder] = []
    left_out: list[tuple[str, str]] = []
    for path in _candidates(folder):
        reason = OTHER_KINDS.get(os.path.splitext(path)[1].lower())
        if reason is None:
            try:
                found.append(_looked_at(folder, path))
                continue
            except IngotError as error:
                reason = f"{error.what}: {error.why}" if error.why else error.what
        left_out.append((path, reason))
    names = _names([model.path for model in found])
    models = (ModelOfFolder(names[it.path], it.path, it.size_bytes, it.inputs) for it in found)
    return FoundModels(tuple(models), tuple(left_out))


def _candidates(folder: str) -> Iterator[str]:
    """Paths of files that are, or look like, models; the same order each time."""
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(it for it in folders if it[:1] != "." and it not in _SKIPPED)
        for name in sorted(files):
            ending = os.path.splitext(name)[1].lower()
            if name[:1] != "." and (ending == ".onnx" or ending in OTHER_KINDS):
                yield os.path.relpath(os.path.join(base, name), folder).replace(os.sep, "/")


def _looked_at(folder: str, path: str) -> ModelOfFolder:
    """Parse a model, and look whether its data are there; its name comes later.

    Raises:
        UserError: it cannot be the source of a bundle. ModelError: it is no model.
    """
    from ingot_build_rules.making.values.model_file import read_model
    from ingot_compiler.frontend.model.read_model import parse_model

    if is_glob(path) or not path.isprintable():
        why = "a project file takes such a path for a pattern"
        raise UserError("its path has wildcards or control characters", path, why, "rename it")
    content = read_model(os.path.join(folder, path), None)
    graph = parse_model(memoryview(content))[0].graph
    size_bytes = len(content) + sum(
        _data_bytes(folder, path, name) for name in sorted(_external(graph))
    )
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [
        (value.name, _sizes(value.type.tensor_type.shape.dim))
        for value in graph.input
        if value.name not in constants
    ]
    return ModelOfFolder("", path, size_bytes, tuple(inputs))


def _sizes(dims: Any) -> tuple[int | str, ...]:
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims
    )


def _external(graph: Any) -> set[str]:
    """The files that constants of the graph lie in, beside the model."""
    return {
        entry.value
        for tensor in graph.initializer
        if tensor.data_location == _EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }


def _data_bytes(folder: str, path: str, name: str) -> int:
    beside = os.path.join(os.path.dirname(path), name)
    try:
        return os.stat(os.path.join(folder, beside)).st_size
    except (OSError, ValueError):
        what, why = "its external data is not there", f"expected {beside}"
        raise UserError(what, path, why, "put it beside the model") from None


def _names(paths: list[str]) -> dict[str, str]:
    """A name for each path: the file's, or the folder's, or both where several have the same."""
    short = {path: _short(path) for path in paths}
    count = Counter(short.values())
    names: dict[str, str] = {}
    for path in paths:
        name = short[path] if count[short[path]] == 1 else _plain(os.path.splitext(path)[0])
        taken, number = set(names.values()), 2
        unique = name
        while unique in taken:
            unique, number = f"{name}-{number}", number + 1
        names[path] = unique
    return names


def _short(path: str) -> str:
    above, name = os.path.split(os.path.splitext(path)[0])
    return _plain(os.path.basename(above) if name in _NO_NAME and above else name)


def _plain(text: str) -> str:
    """A text as a name of a project: what such a name may not have becomes a dash."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")
    return name if is_plain(name) else "model"
