"""A bundle in memory: what ``ingot.compile`` gives.

In: a model, options, a cache. Out: ``Bundle``. Not done here: the chain of rules (``compilation``),
arguments (``compile``).

The bundle keeps its parts as they are mapped: it can be saved after its cache has been collected.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ingot_artifacts.bundle.write import BundleSkeleton, write_with_weights
from ingot_artifacts.store.atomic import sync_folders
from ingot_build_rules.making.options.option_rows import WARN
from ingot_build_rules.making.stages.describe_placement import find_fallbacks
from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
from ingot_build_rules.making.stages.output_file import check_output
from ingot_build_rules.making.stages.start_compilation import start_compilation
from ingot_build_rules.tools.api.bundle_facts import BundleFacts, facts_of
from ingot_build_rules.tools.api.python_errors import raise_python_errors

if TYPE_CHECKING:
    import numpy as np

    from ingot_build_rules.making.options.compile_options import CompileOptions
    from ingot_build_rules.making.rules.bundle import BundleParts
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.tools.api.given_model import GivenModel

Check = bool | Mapping[str, "np.ndarray[Any, Any]"]


class Bundle:
    """A compiled model; ``save`` writes the one file that a device needs."""

    def __init__(
        self,
        parts: BundleParts,
        facts: BundleFacts,
        model: GivenModel,
        options: CompileOptions,
        settings: BuildSettings,
    ) -> None:
        """Take over a finished compilation; use ``ingot.compile``."""
        self.digest = parts.root
        self._facts = facts
        self._skeleton = BundleSkeleton(parts.root, bytes(parts.prefix.value()), parts.size_bytes)
        self._weights = [
            (packed.offset_bytes, packed.part_of(packed.content.value())) for packed in parts.packed
        ]
        self._model, self._options, self._settings = model, options, settings

    def __repr__(self) -> str:
        """Return the model's call, targets, size and digest in a line."""
        return self._facts.text()

    def _repr_html_(self) -> str:
        return self._facts.html()

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the bundle, whole or not at all, and wait until it is on the disk; return its root
        digest, 64 hex digits."""
        check_output(os.fspath(path))
        write_with_weights(self._skeleton, self._weights, path)
        sync_folders([os.path.dirname(os.path.abspath(path))])
        return self.digest

    def to_bytes(self) -> bytes:
        """Return the bundle's bytes, for ``ingot_runtime.load``."""
        content = bytearray(self._skeleton.size_bytes)
        start = len(self._skeleton.prefix)
        content[:start] = self._skeleton.prefix
        for offset_bytes, part in self._weights:
            content[start + offset_bytes : start + offset_bytes + len(part)] = part
        return bytes(content)

    def text(self, stage: str) -> str:
        """Return the text view of a stage, as ``ingot compile --to STAGE`` prints it.

        Raises:
            UserError: no such stage.
        """
        from ingot_build_rules.tools.text.stage_text import check_stage, stage_text

        check_stage(stage)
        with raise_python_errors(), open_build(self._settings) as build:
            return stage_text(start_compilation(build, self._model.model, self._options), stage)


def compile_bundle(
    model: GivenModel,
    options: CompileOptions,
    settings: BuildSettings,
    check: Check = False,
    max_bytes: int | None = None,
) -> Bundle:
    """Compile a model; with ``check`` run it against the interpreter, on these inputs or on
    generated ones.

    Raises:
        UserError, ModelError, UnsupportedError, LimitError: as the stages find them.
        VerificationError: ``check`` found a difference.
    """
    with open_build(settings) as build:
        compiled = start_compilation(build, model.model, options, max_bytes)
        parts = build.run(compiled.compilation.bundle_parts())
        if options.choices.fallback == WARN:
            for text in build.run(find_fallbacks(compiled.compilation)):
                warnings.warn(text, stacklevel=4)
        if check is not False:
            _check(compiled, None if check is True else check)
        return Bundle(parts, facts_of(compiled, parts), model, options, settings)


def _check(compiled: CompiledModel, inputs: Mapping[str, np.ndarray[Any, Any]] | None) -> None:
    from ingot_build_rules.tools.check.self_check import check_bundle

    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "bundle.ingot")
        compiled.save(path)
        check_bundle(compiled, path, inputs).require_equal()
