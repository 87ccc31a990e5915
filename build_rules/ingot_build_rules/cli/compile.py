"""Verb ``compile``: a model to one bundle, or the text of a stage.

In: arguments. Out: a bundle or text, a summary, an exit code. Not done here: the build (``rules``).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console, usage
from ingot_build_rules.cli.compile_options import check_options
from ingot_build_rules.cli.compile_report import CompileOutcome, report_lines, report_values
from ingot_build_rules.cli.jobserver_flags import makeflags
from ingot_build_rules.cli.options import CACHES, JSON, QUIET, Option, add_jobs, add_options
from ingot_build_rules.rules.compile_options import GENERAL, OTHER_SHAPES
from ingot_build_rules.text.stages import FROM_STAGES, STAGES
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_trust

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel
    from ingot_build_rules.compilation.open_build import BuildSettings
    from ingot_build_rules.engine.events.events import Event, Observer
    from ingot_build_rules.engine.scheduler import Scheduler
    from ingot_build_rules.rules.compile_options import CompileOptions


_MODEL_OPTIONS = (
    Option("-o --output", "the bundle to write (with --to: the text)", "OUT.ingot"),
    Option(
        "--target",
        "ARCH[:cpu][+feature|-feature]..., one variant each (default: native)",
        "T",
        repeats=True,
    ),
    Option(
        "--shape",
        "also compile kernels for this shape of an input: ? for any size, 1..8 for a range",
        "NAME=1x3x224x224",
        usage.shape,
        repeats=True,
    ),
    Option(
        "--other-shapes",
        "what serves calls of no --shape: the general version (default), or nothing",
        default=GENERAL,
        choices=OTHER_SHAPES,
    ),
    Option(
        "--device",
        "declare a virtual device",
        "NAME=KIND[:ID][,target=T][,scope=S]",
        usage.device,
        repeats=True,
    ),
    Option("--place", "put nodes on a device", "GLOB=NAME", usage.pair, repeats=True),
)
_MEMORY_OPTIONS = (
    Option("--planner", "memory planner (default: best of all)", "NAME", default="best"),
    Option(
        "--max-bytes",
        "refuse what expands, folds or plans more memory, such as 2GiB",
        "SIZE",
        usage.size_bytes,
    ),
)
_STAGE_OPTIONS = (
    Option(
        "--weights",
        "with --from: the constants by number; with --to graph, placed: write them",
        "F.npz",
    ),
    Option("--to", f"print a stage: {', '.join(STAGES)}", "STAGE", choices=STAGES),
)
_DEPFILE = Option("--depfile", "write the sources of the bundle for make or ninja", "FILE")


def add_arguments(parser: usage.Parser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an .onnx file; external data lies beside it (with --from: a text)",
    )
    add_options(parser, *_MODEL_OPTIONS)
    _add_stages(parser)
    parser.add_optional_file(
        "--check",
        ".npz",
        metavar="INPUTS.npz",
        help="run the bundle against the interpreter node by node (default: generated inputs)",
    )
    add_options(parser, *_MEMORY_OPTIONS)
    add_jobs(parser, "--workers")
    add_options(parser, _DEPFILE, *CACHES, QUIET, JSON)


def _add_stages(parser: usage.Parser) -> None:
    """The options that speak of stages."""
    parser.add_argument(
        "--from",
        dest="from_",
        choices=FROM_STAGES,
        metavar="STAGE",
        help=f"MODEL is the text of a stage: {', '.join(FROM_STAGES)}",
    )
    add_options(parser, *_STAGE_OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Compile, and say what came out."""
    from ingot_build_rules.compilation.options import make_options
    from ingot_build_rules.compilation.output_file import check_output

    check_options(arguments)
    shapes = usage.profiles(arguments.shape)
    devices = usage.unique(arguments.device, "--device")
    options = make_options(
        arguments.target,
        shapes,
        devices,
        arguments.place,
        arguments.planner,
        arguments.other_shapes,
    )
    if arguments.output is not None:
        given = [arguments.check] if arguments.check else []
        check_output(arguments.output, [arguments.model, *given])
    if arguments.from_ == "loops":
        return _compile_loops(arguments, options.targets)
    outcome, seconds = _compile(arguments, options)
    if outcome.checked is not None and outcome.checked.differences:
        if arguments.json:
            console.print_json({"output": None, "check": outcome.checked.plain()})
        outcome.checked.require_equal()
    if arguments.to:
        _give_text(outcome.result, arguments.output)
    else:
        _report(outcome, arguments, seconds)
    return 0


def _compile(
    arguments: argparse.Namespace, options: CompileOptions
) -> tuple[CompileOutcome, float]:
    """Compile, and show how it goes; return what came out, and in how many seconds."""
    from ingot_build_rules.cli.build_progress import build_observer
    from ingot_build_rules.compilation.open_build import open_build
    from ingot_build_rules.compilation.output_file import write_text
    from ingot_build_rules.engine.events.depfile import depfile_text

    started = time.perf_counter()
    quiet = arguments.quiet or arguments.json
    with ExitStack() as stack:
        show = stack.enter_context(build_observer({}, quiet=quiet))
        settings = _settings(arguments, _without_failures(show))
        build = stack.enter_context(open_build(settings))
        outcome = _outcome(_started(build, arguments, options), arguments)
        if arguments.depfile is not None:
            sources = build.run(outcome.compiled.compilation.source_paths())
            write_text(arguments.depfile, depfile_text(str(arguments.output), sources))
    return outcome, time.perf_counter() - started


def _without_failures(show: Observer) -> Observer:
    """Show all but failures: the one there can be is told as the command's error."""
    from ingot_build_rules.engine.events.events import ActionFinished

    def observe(event: Event) -> None:
        if not (isinstance(event, ActionFinished) and event.how == "failed"):
            show(event)

    return observe


def _started(
    build: Scheduler, arguments: argparse.Namespace, options: CompileOptions
) -> CompiledModel:
    """The compilation of a model, or of the text of a stage."""
    from ingot_build_rules.compilation.start_compilation import start_compilation, start_from_text

    if arguments.from_ is None:
        return start_compilation(build, arguments.model, options, arguments.max_bytes)
    return start_from_text(
        build, arguments.from_, arguments.model, options, arguments.weights, arguments.max_bytes
    )


def _compile_loops(arguments: argparse.Namespace, targets: Sequence[str]) -> int:
    """Kernels alone: their text, or the object of the one that there is."""
    from ingot_artifacts.store.atomic import atomic_file
    from ingot_build_rules.compilation.from_text import read_text
    from ingot_build_rules.text.loops_file import groups_text, kernel_object, read_groups

    groups = read_groups(read_text(arguments.model), targets)
    if arguments.to is not None:
        _give_text(groups_text(groups, arguments.to), arguments.output)
        return 0
    content = kernel_object(groups)
    with atomic_file(arguments.output) as file:
        file.write(content)
    return 0


def _settings(arguments: argparse.Namespace, observe: Observer) -> BuildSettings:
    from ingot_build_rules.compilation.open_build import BuildSettings
    from ingot_build_rules.engine.events.events import Message
    from ingot_build_rules.workspace.action_events import ActionEvents

    return BuildSettings(
        cache_folder(arguments.cache),
        cache_trust(shared=arguments.cache_shared),
        tuple(map(os.path.abspath, arguments.cache_below)),
        read_only=arguments.read_only,
        jobs=arguments.jobs,
        observers=ActionEvents(observe).observers(),
        makeflags=makeflags(),
        warn=lambda text: observe(Message("warning", text)),
    )


def _outcome(compiled: CompiledModel, arguments: argparse.Namespace) -> CompileOutcome:
    """Make what is asked for: the text of a stage, or the bundle's file."""
    if arguments.to:
        return CompileOutcome(compiled, _stage_text(compiled, arguments), {}, None)
    if arguments.check is None:
        digest = compiled.save(arguments.output)
        return CompileOutcome(compiled, digest, compiled.summary(), None)
    from ingot_build_rules.check.self_check import save_checked
    from ingot_runtime.npz import read_npz

    inputs = read_npz(arguments.check) if arguments.check else None
    digest, checked = save_checked(compiled, arguments.output, inputs)
    return CompileOutcome(compiled, digest, compiled.summary(), checked)


def _stage_text(compiled: CompiledModel, arguments: argparse.Namespace) -> str:
    """The text of a stage; the weights beside it are written where they are asked for."""
    from ingot_build_rules.compilation.stage_weights import write_weights
    from ingot_build_rules.text.stage_text import stage_text

    if arguments.weights is not None and arguments.from_ is None:
        write_weights(compiled, arguments.weights)
    return stage_text(compiled, arguments.to)


def _report(outcome: CompileOutcome, arguments: argparse.Namespace, seconds: float) -> None:
    values = report_values(outcome, arguments.output, seconds)
    if arguments.json:
        console.print_json(values)
    elif not arguments.quiet:
        console.print_lines(*report_lines(values, outcome.checked))


def _give_text(text: str, output: str | None) -> None:
    if output is None:
        console.print_listing(text.removesuffix("\n"))
        return
    from ingot_build_rules.compilation.output_file import write_text

    write_text(output, text if text.endswith("\n") else text + "\n")
