"""Ingot on the build machine: ``ingot.compile`` makes a bundle from a model, ``ingot.Project`` declares many.

In: a model, options. Out: a ``Bundle``, a ``Project``. Not done here: anything itself; this is the facade of ``ingot_build_rules``.
On the device there is ``ingot_runtime`` alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot_compiler.ir.errors import (
    BuildError,
    IncompatibleTargetError,
    IngotError,
    InternalError,
    ModelError,
    UnsupportedError,
    UserError,
    VerificationError,
)

if TYPE_CHECKING:
    import numpy as np

    from ingot_build_rules.project.api import Project
    from ingot_build_rules.rules.compile_model import CompiledModel
    from ingot_build_rules.rules.model_source import Model

__all__ = [
    "BuildError",
    "Bundle",
    "IncompatibleTargetError",
    "IngotError",
    "InternalError",
    "ModelError",
    "Project",
    "UnsupportedError",
    "UserError",
    "VerificationError",
    "compile",
]


def __getattr__(name: str) -> object:
    """Import ``Project`` when it is first asked for: reading project files costs more than the rest of this module."""
    if name != "Project":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ingot_build_rules.project.api import Project

    return Project


class Bundle:
    """A compiled model; ``save`` writes the one file that a device needs."""

    def __init__(self, compiled: CompiledModel) -> None:
        """Wrap a finished compilation; use ``ingot.compile``."""
        self._compiled = compiled

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the bundle, whole or not at all; return its root digest, 64 hex digits."""
        return self._compiled.save(os.fspath(path))

    def to_bytes(self) -> bytes:
        """Return the bundle's bytes, for ``ingot_runtime.load``."""
        return self._compiled.to_bytes()

    def text(self, stage: str) -> str:
        """Return the text view of a stage, as ``ingot compile --to STAGE`` prints it."""
        return self._compiled.text(stage)


def compile(  # noqa: A001
    model: Model,
    targets: Sequence[str] = ("native",),
    shapes: Mapping[str, Sequence[int]] | None = None,
    devices: Mapping[str, str] | None = None,
    place: Mapping[str, str] | None = None,
    workers: int = 1,
    check: bool | Mapping[str, np.ndarray[Any, Any]] = False,
) -> Bundle:
    """Compile a model ahead of time.

    Args:
        model: path of an ``.onnx`` file, its bytes, or an ``onnx.ModelProto``.
        targets: one variant each, ``ARCH[:cpu][+feature|-feature]...``; ``native`` is this machine.
        shapes: input name -> sizes, for inputs whose shape the model leaves open.
        devices: virtual device -> kind; ``host`` is always there.
        place: glob over node names -> virtual device.
        workers: processes at most; the bundle is the same for any number.
        check: run the bundle against the interpreter node by node, on these inputs or, if True, on generated ones.

    Raises:
        UserError: a wrong argument. ModelError: a wrong model. UnsupportedError: all that is not supported yet, listed.
        VerificationError: ``check`` found a node that differs.
    """
    from ingot_build_rules.rules.compile_model import compile_model
    from ingot_build_rules.rules.options import make_options

    options = make_options(targets, shapes, devices, tuple((place or {}).items()))
    compiled = compile_model(model, options)
    compiled.make()
    if check is not False:
        _check(compiled, None if check is True else check)
    return Bundle(compiled)


def _check(compiled: CompiledModel, inputs: Mapping[str, np.ndarray[Any, Any]] | None) -> None:
    import tempfile

    from ingot_build_rules.rules.self_check import check_bundle

    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "bundle.ingot")
        compiled.save(path)
        check_bundle(compiled, path, inputs).require_equal()
