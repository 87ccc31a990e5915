"""``ingot.compile``: one model, from Python.

In: a model and options as Python values. Out: a ``Bundle``. Not done here: compiling (``rules``),
what is a model (``given_model``), projects (``workspace.declared_project``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from ingot_build_rules.api.arguments import (
    read_check,
    read_count,
    read_place,
    read_plugin_texts,
    read_pool_texts,
    read_shapes,
    read_targets,
    read_texts,
)
from ingot_build_rules.api.choice_arguments import names_choices
from ingot_build_rules.api.compiled_bundle import Bundle, Check, compile_bundle
from ingot_build_rules.api.given_model import given_model
from ingot_build_rules.api.in_arguments import errors_in_arguments
from ingot_build_rules.compilation.op_options import read_ops
from ingot_build_rules.compilation.open_build import BuildSettings
from ingot_build_rules.compilation.options import Shapes, make_options
from ingot_build_rules.compilation.plugins import read_plugins
from ingot_build_rules.compilation.tuning_file import read_tuning
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_max_bytes, cache_trust

if TYPE_CHECKING:
    from ingot_build_rules.api.given_model import AnyModel
    from ingot_build_rules.rules.choices import ChoiceKeywords
    from ingot_build_rules.rules.compile_options import PluginOption
    from ingot_build_rules.rules.op_option import OpOption
    from ingot_compiler.backends.target_forms import GivenTargets


Targets = str | Sequence[str | Mapping[str, object]] | Mapping[str, str | Mapping[str, object]]


@names_choices
@errors_in_arguments()
def compile(  # noqa: A001
    model: AnyModel,
    example_inputs: object = None,
    *,
    dynamic_shapes: object = None,
    graph: str | None = None,
    targets: Targets = "native",
    shapes: Shapes | None = None,
    devices: Mapping[str, str] | None = None,
    place: Mapping[str, str] | str | None = None,
    workers: int = 1, check: Check = False,
    cache: str | os.PathLike[str] | None = None, cache_shared: bool = False,
    max_bytes: int | None = None,
    other_shapes: str = "general",
    plugins: str | Sequence[str] = (),
    ops: Mapping[str, str] | None = None,
    tuning: str | os.PathLike[str] | None = None,
    pools: str | Sequence[str] = (),
    **choices: Unpack[ChoiceKeywords],
) -> Bundle:  # fmt: skip
    """Compile a model ahead of time, as ``ingot compile`` does, over the same cache.

    Args:
        model: an ``.onnx`` file, its bytes or message, a program, a PyTorch module; a folder.
        example_inputs: of a PyTorch module: what it is called with, a tensor, a tuple, or a dict.
        dynamic_shapes: of a PyTorch module: as ``torch.export.export`` takes them.
        graph: which graph of a folder, where it has several: ``"decoder_model"``.
        targets: one, or several with one variant each, in any form; a dict gives them names.
        shapes: input name -> ``(1, 3, None, (1, 224))`` with a version of its own; or several.
        devices: virtual device -> ``"cpu:1"``; ``host`` is always there.
        place: glob over node names -> virtual device or "auto"; or "auto" for all nodes.
        workers: processes at most; the bundle is the same for any number.
        check: compare with the interpreter, on these inputs or, if True, on generated ones.
        max_bytes: of the model's functions, constants, values on the way to one, planned memory.
        other_shapes: what serves calls of no such shape: the "general" version, or "refuse".
        plugins: targets from outside, ``"module:TARGET"``; they run with your rights.
        ops: ``"my.domain::Foo"`` -> the file that defines it.
        tuning: a file of ``ingot tune``.
        pools: ``"fast=200kB"``, ``"slow"``: memory for what is computed on the host, preferred first.
        cache: the cache's folder; None for the user's.
        cache_shared: trust all who can write to the cache; by default it must be the user's alone.

    Raises:
        UserError, ModelError, PluginError, UnsupportedError, LimitError; VerificationError of ``check``."""
    texts, named = _texts(targets, shapes, devices, place), read_plugins(read_plugin_texts(plugins))
    options = make_options(*texts, other_shapes=other_shapes, plugins=named, ops=_ops(ops),
        tuning=read_tuning(tuning), pools=read_pool_texts(pools), **choices)  # fmt: skip
    settings, inputs = _settings(workers, cache, named, shared=cache_shared), read_check(check)
    given = given_model(model, example_inputs, dynamic_shapes, graph)
    return compile_bundle(given, options, settings, inputs, _limit(max_bytes))


def _limit(max_bytes: int | None) -> int | None:
    return None if max_bytes is None else read_count("max_bytes", max_bytes, 0)


def _ops(ops: object) -> tuple[OpOption, ...]:
    example = "{'my.domain::Foo': 'foo.ingot-text'}"
    return read_ops(read_texts("ops", example, ops).items())


def _texts(
    targets: object, shapes: object, devices: object, place: object
) -> tuple[GivenTargets, list[dict[str, str]], dict[str, str], tuple[tuple[str, str], ...]]:
    """What ``make_options`` takes first."""
    return (
        read_targets(targets),
        read_shapes(shapes),
        read_texts("devices", "{'acc': 'cpu:1'}", devices),
        read_place(place),
    )


def _settings(
    workers: int,
    cache: str | os.PathLike[str] | None,
    plugins: tuple[PluginOption, ...],
    *,
    shared: bool,
) -> BuildSettings:
    folder = cache_folder(None if cache is None else os.fspath(cache))
    processes = read_count("workers", workers, 1)
    return BuildSettings(
        folder,
        cache_trust(shared=shared),
        jobs=processes,
        plugins=plugins,
        max_bytes=cache_max_bytes(),
    )
