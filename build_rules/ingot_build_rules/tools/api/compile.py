"""``ingot.compile``: one model, from Python.

In: a model and options as Python values. Out: a ``Bundle``. Not done here: compiling (``rules``),
what is a model (``given_model``), projects (``workspace.declared_project``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from ingot_build_rules.making.options.options import read_options
from ingot_build_rules.making.stages.open_build import BuildSettings
from ingot_build_rules.tools.api.arguments import read_check, read_count, read_given
from ingot_build_rules.tools.api.compiled_bundle import Bundle, Check, compile_bundle
from ingot_build_rules.tools.api.given_model import given_model
from ingot_build_rules.tools.api.option_arguments import names_options
from ingot_build_rules.tools.api.python_errors import raise_python_errors
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_folder,
    cache_max_bytes,
    cache_trust,
)

if TYPE_CHECKING:
    from ingot_build_rules.making.options.compile_options import PluginOption
    from ingot_build_rules.making.options.option_rows import CompileKeywords
    from ingot_build_rules.tools.api.given_model import AnyModel


@names_options
@raise_python_errors()
def compile(  # noqa: A001
    model: AnyModel,
    example_inputs: object = None,
    *,
    dynamic_shapes: object = None,
    graph: str | None = None,
    workers: int = 1, check: Check = False,
    cache: str | os.PathLike[str] | None = None, cache_shared: bool = False,
    max_bytes: int | None = None,
    **options: Unpack[CompileKeywords],
) -> Bundle:  # fmt: skip
    """Compile a model ahead of time, as ``ingot compile`` does, over the same cache.

    Args:
        model: an ``.onnx`` file, its bytes or message, a program, a PyTorch module; a folder.
        example_inputs: of a PyTorch module: what it is called with, a tensor, a tuple, or a dict.
        dynamic_shapes: of a PyTorch module: as ``torch.export.export`` takes them.
        graph: which graph of a folder, where it has several: ``"decoder_model"``.
        workers: processes at most; the bundle is the same for any number.
        check: compare with the interpreter, on these inputs or, if True, on generated ones.
        max_bytes: of the model's functions, constants, values on the way to one, planned memory.
        cache: the cache's folder; None for the user's.
        cache_shared: trust all who can write to the cache; by default it must be the user's alone.

    Raises:
        UserError, ModelError, PluginError, UnsupportedError, LimitError; VerificationError of ``check``."""
    requested, processes = read_options(read_given(options)), read_count("workers", workers, 1)
    settings = _settings(processes, cache, requested.plugins, shared=cache_shared)
    given = given_model(model, example_inputs, dynamic_shapes, graph)
    return compile_bundle(given, requested, settings, read_check(check), _limit(max_bytes))


def _limit(max_bytes: int | None) -> int | None:
    return None if max_bytes is None else read_count("max_bytes", max_bytes, 0)


def _settings(
    processes: int,
    cache: str | os.PathLike[str] | None,
    plugins: tuple[PluginOption, ...],
    *,
    shared: bool,
) -> BuildSettings:
    folder = cache_folder(None if cache is None else os.fspath(cache))
    return BuildSettings(
        folder,
        cache_trust(shared=shared),
        jobs=processes,
        plugins=plugins,
        max_bytes=cache_max_bytes(),
    )
