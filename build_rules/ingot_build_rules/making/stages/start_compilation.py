"""A compilation over an open build: of a model, or of the text of a stage.

In: a build, a model or a text, options. Out: ``CompiledModel``. Not done here: opening the build
(``open_build``), one in memory alone (``compile_model``).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import cast

from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.option_rows import PROGRAM
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_build_rules.making.stages.compile_model import CompiledModel
from ingot_build_rules.making.stages.kind_of_file import is_program, weights_beside
from ingot_build_rules.making.stages.model_source import Model, open_model
from ingot_build_rules.making.stages.toolchain import Toolchain, toolchain


def start_compilation(
    build: Scheduler, model: Model, options: CompileOptions, max_bytes: int | None = None
) -> CompiledModel:
    """Start a compilation of ``model`` over an open build, which is refused where it needs more
    than ``max_bytes``.

    Raises:
        UserError: the file is not there or not readable. What `compilation_of` raises.
    """
    return CompiledModel(compilation_of(build, model, options, toolchain(), max_bytes))


def compilation_of(
    build: Scheduler,
    model: Model,
    options: CompileOptions,
    tools: Toolchain,
    max_bytes: int | None = None,
) -> Compilation:
    """The compilation of a model, or of a program with the weights beside it.

    Raises:
        UserError: the file is not there or not readable. Of a program: UserError: options that its
            text says already. ModelError: it does not parse, or its annotations contradict.
            UnsupportedError: it is no graph.
    """
    if is_program(model):
        path = os.path.abspath(os.fspath(cast("str", model)))
        return _of_program(build, path, options, weights_beside(path), tools, max_bytes)
    source = open_model(model, build.files.digest)
    return Compilation(build, source, options, tools, max_bytes)


def start_from_text(
    build: Scheduler,
    stage: str,
    path: str,
    options: CompileOptions,
    weights: str | None,
    max_bytes: int | None = None,
) -> CompiledModel:
    """Start a compilation of the text of a ``stage``, "graph" or "placed", or of a program, with
    the ``weights`` of a file, if there is one.

    Raises:
        UserError: a file is not there, or not of this text. ModelError: the text does not parse, or
            is not valid.
    """
    from ingot_build_rules.making.stages.from_text import (
        TextCompilation,
        placed_options,
        read_stage,
    )
    from ingot_build_rules.making.stages.stage_weights import StageWeights, read_weights
    from ingot_compiler.ir.graph import Graph

    tools = toolchain()
    if stage == PROGRAM:
        file = weights or weights_beside(path)
        return CompiledModel(_of_program(build, path, options, file, tools, max_bytes))
    given = read_weights(weights) if weights is not None else StageWeights()
    found = read_stage(stage, path)
    chosen = options if isinstance(found, Graph) else placed_options(found, options)
    return CompiledModel(TextCompilation(build, found, chosen, tools, given, (path,), max_bytes))


def _of_program(
    build: Scheduler,
    path: str,
    options: CompileOptions,
    weights: str | None,
    tools: Toolchain,
    max_bytes: int | None,
) -> Compilation:
    """The compilation of the graph of a program's plan, on the devices that it declares."""
    from ingot_build_rules.making.options.configure import configure, device_options
    from ingot_build_rules.making.stages.from_program import check_options, read_program
    from ingot_build_rules.making.stages.from_text import TextCompilation
    from ingot_build_rules.making.stages.stage_weights import StageWeights, read_weights

    program = read_program(path, options.targets)
    given = StageWeights() if weights is None else read_weights(weights)
    devices = device_options(configure(options.targets, program.devices))
    check_options(options, devices, path)
    chosen, named = replace(options, devices=devices), program.named(given)
    files = (path, *filter(None, (weights,)))
    return TextCompilation(build, program.graph, chosen, tools, named, files, max_bytes)
