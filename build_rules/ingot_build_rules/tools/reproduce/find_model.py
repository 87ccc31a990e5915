"""Which model in a folder is the one that a bundle was made from.

In: a folder, what the bundle and its lock file record, a build. Out: ``FoundModel``. Not done here:
comparing bundles (``reproduce``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ingot_build_rules.engine.cache.file_digests import file_digest
from ingot_build_rules.making.stages.compile_model import CompiledModel
from ingot_build_rules.making.stages.lock_file import LockFile
from ingot_build_rules.tools.reproduce.bundle_record import BundleRecord
from ingot_compiler.ir.digest import graph_digest
from ingot_compiler.ir.errors import BuildError, InternalError, UnsupportedError, UserError
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_ENDING = ".onnx"
Start = Callable[[str], CompiledModel]
"""Begins a compilation of the model at a path, with the recorded options."""
Likeness = tuple[float, float, float, float]
"""Same graph, share of the weights that are the same, same name of graph, same name of file; each
from 0 to 1."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """``path``: relative to the folder. ``changed``: (path, recorded digest, present one or "") of
    sources that the lock file knows; None without a lock file."""

    path: str
    compiled: CompiledModel
    changed: tuple[tuple[str, str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class Sought:
    """What is known of the model. ``bundle``: path of the bundle: a model that is called like it is
    looked at first; ``record``: what the bundle was made from; ``model_name``: the graph's name in
    it; ``lock``: names the model's file."""

    bundle: str
    record: BundleRecord
    model_name: str
    lock: LockFile | None = None

    @property
    def stem(self) -> str:
        """The name of the bundle's file without its ending."""
        return _stem(self.bundle)


def find_model(folder: str, sought: Sought, start: Start) -> FoundModel:
    """Find the model in a ``folder``, or a model's file that is named instead: by the lock file's
    path, by its digest, else by what the bundle records of graph and weights.

    Raises:
        UserError: no such folder, or nothing in it that could be the model.
    """
    if os.path.isfile(folder):
        return FoundModel(os.path.basename(folder), start(folder))
    if not os.path.isdir(folder):
        why = "expected a folder with the model"
        raise UserError(
            "no such source folder",
            folder,
            why,
            ("name another one: ", OptionRef("source", "FOLDER")),
        )
    lock = sought.lock
    if lock is not None and lock.sources:
        path = _locked(folder, lock)
        if path:
            return FoundModel(path, start(os.path.join(folder, path)), _changed(folder, lock))
    path, compiled = _most_alike(folder, sought, start)
    return FoundModel(path, compiled)


def _locked(folder: str, lock: LockFile) -> str:
    """The file of the recorded name, else one with the recorded bytes."""
    path, digest = lock.sources[0]
    if os.path.isfile(os.path.join(folder, path)):
        return path
    return next(
        (found for found in _models(folder) if file_digest(os.path.join(folder, found)) == digest),
        "",
    )


def _changed(folder: str, lock: LockFile) -> tuple[tuple[str, str, str], ...]:
    present = [(path, digest, _digest(os.path.join(folder, path))) for path, digest in lock.sources]
    return tuple((path, recorded, found) for path, recorded, found in present if recorded != found)


def _digest(path: str) -> str:
    try:
        return file_digest(path)
    except OSError:
        return ""


def _models(folder: str) -> Iterator[str]:
    """Yield every model below the folder, in sorted order; hidden folders are left out, links are
    not followed."""
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(_ENDING):
                yield os.path.relpath(os.path.join(at, name), folder).replace(os.sep, "/")


def _most_alike(folder: str, sought: Sought, start: Start) -> tuple[str, CompiledModel]:
    """Take the first model with the recorded graph and weights, else the one that has most of
    them."""
    paths = sorted(_models(folder), key=lambda path: (_stem(path) != sought.stem, path))
    best: tuple[Likeness, str, CompiledModel] | None = None
    for path in paths:
        compiled = start(os.path.join(folder, path))
        try:
            alike = _likeness(compiled, path, sought)
        except (UserError, BuildError, UnsupportedError, InternalError):
            continue  # it cannot be compiled, so it is another one
        if any(alike) and (best is None or alike > best[0]):
            best = alike, path, compiled
        if alike[:2] == (1, 1):
            break
    if best is None:
        raise _none_alike(folder, len(paths), sought.model_name)
    return best[1], best[2]


def _none_alike(folder: str, model_count: int, model_name: str) -> UserError:
    has = f"the recorded graph, a recorded weight or the name {model_name!r}"
    return UserError(
        "no model that the bundle could be made from",
        folder,
        f"none of its {model_count} .onnx files has {has}",
        ("name its folder: ", OptionRef("source", "FOLDER")),
    )


def _likeness(compiled: CompiledModel, path: str, sought: Sought) -> Likeness:
    weights, recorded = weight_digests(compiled), sought.record.weights
    known = set(recorded)
    shared_count = sum(digest in known for digest in weights)
    return (
        float(graph_digest(compiled.graph) == sought.record.graph),
        1.0 if weights == recorded else shared_count / (len(known) + 1),
        float(compiled.names.model == sought.model_name),
        float(_stem(path) == sought.stem),
    )


def weight_digests(compiled: CompiledModel) -> tuple[str, ...]:
    """Digests of the model's constants by number, as a bundle records them."""
    imported = compiled.compilation.build.run(compiled.compilation.imported())
    return tuple(weight.digest for weight in imported.weights)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
