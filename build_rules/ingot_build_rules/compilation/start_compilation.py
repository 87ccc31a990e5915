"""A compilation over an open build: of a model, or of the text of a stage.

In: a build, a model or a text, options. Out: ``CompiledModel``. Not done here: opening the build
(``open_build``), one in memory alone (``compile_model``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_build_rules.compilation.compilation import Compilation
from ingot_build_rules.compilation.compile_model import CompiledModel
from ingot_build_rules.compilation.model_source import Model, open_model
from ingot_build_rules.compilation.own_code import tool_path
from ingot_build_rules.compilation.program_suffix import PROGRAM
from ingot_build_rules.compilation.toolchain import Toolchain, toolchain
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.rules.compile_options import CompileOptions

if TYPE_CHECKING:
    from ingot_build_rules.compilation.stage_weights import StageWeights


def start_compilation(
    build: Scheduler, model: Model, options: CompileOptions, max_bytes: int | None = None
) -> CompiledModel:
    """Start a compilation of ``model`` over an open build, which is refused where it needs more
    than ``max_bytes``.

    Raises:
        UserError: the file is not there or not readable.
    """
    source = open_model(model, build.files.digest)
    return CompiledModel(Compilation(build, source, options, _toolchain(build), max_bytes))


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
    from ingot_build_rules.compilation.from_text import TextCompilation, placed_options, read_stage
    from ingot_build_rules.compilation.stage_weights import StageWeights, read_weights
    from ingot_compiler.ir.graph import Graph

    given = read_weights(weights) if weights is not None else StageWeights()
    if stage == PROGRAM:
        return _start_from_program(build, path, options, given, max_bytes)
    found = read_stage(stage, path)
    chosen = options if isinstance(found, Graph) else placed_options(found, options)
    tools = _toolchain(build)
    return CompiledModel(TextCompilation(build, found, chosen, tools, given, path, max_bytes))


def _start_from_program(
    build: Scheduler,
    path: str,
    options: CompileOptions,
    given: StageWeights,
    max_bytes: int | None,
) -> CompiledModel:
    """Start a compilation of the graph of a program's plan, on the devices that it declares."""
    from ingot_build_rules.compilation.configure import configure, device_options
    from ingot_build_rules.compilation.from_program import read_program
    from ingot_build_rules.compilation.from_text import TextCompilation

    program = read_program(path)
    devices = device_options(configure(options.targets, program.devices))
    chosen = replace(options, devices=devices)
    named, tools = program.named(given), _toolchain(build)
    return CompiledModel(
        TextCompilation(build, program.graph, chosen, tools, named, path, max_bytes)
    )


def _toolchain(build: Scheduler) -> Toolchain:
    return toolchain(build.files.digest(tool_path("zig")))
