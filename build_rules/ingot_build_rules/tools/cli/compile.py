"""Verb ``compile``: a model to one bundle, or the text of a stage.

In: arguments. Out: a bundle or text, a summary, an exit code. Not done here: the build (``rules``).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ingot_build_rules.making.options.option_rows import (
    NOTHING_GIVEN,
    PROGRAM,
    ROWS,
    GivenOptions,
    files_of,
    given_options,
)
from ingot_build_rules.making.stages.kind_of_file import check_model_kind
from ingot_build_rules.tools.cli.building.compile_options import check_options
from ingot_build_rules.tools.cli.building.compile_output import STANDARD_OUTPUT, compile_output
from ingot_build_rules.tools.cli.building.compile_report import (
    CompileOutcome,
    report_lines,
    report_values,
)
from ingot_build_rules.tools.cli.building.jobserver_flags import makeflags
from ingot_build_rules.tools.cli.shell import console, usage
from ingot_build_rules.tools.cli.shell.failure import FailedCommand
from ingot_build_rules.tools.cli.shell.options import attribute
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_folder,
    cache_max_bytes,
    cache_trust,
)

if TYPE_CHECKING:
    from ingot_build_rules.engine.events.events import Event, Observer
    from ingot_build_rules.engine.scheduler import Scheduler
    from ingot_build_rules.making.options.compile_options import CompileOptions, PluginOption
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.stages.open_build import BuildSettings
    from ingot_build_rules.tools.check.check_report import CheckReport
    from ingot_build_rules.tools.check.selftest import Proved


def run(arguments: argparse.Namespace) -> int:
    """Compile, and say what came out."""
    if arguments.from_ is None and arguments.model.endswith(f".{PROGRAM}"):
        arguments.from_ = PROGRAM
    check_options(arguments)
    if arguments.from_ is None and os.path.isdir(arguments.model):
        from ingot_build_rules.tools.cli.building.compile_folder import compile_folder

        compile_folder(arguments, _run_one)
    else:
        _run_one(arguments)
    return 0


def _run_one(arguments: argparse.Namespace) -> None:
    from ingot_build_rules.making.options.options import read_options
    from ingot_build_rules.making.stages.output_file import check_output

    if arguments.from_ is None:
        check_model_kind(arguments.model)
    options = read_options(_given(arguments), os.curdir)
    with compile_output(arguments) as output:
        if output is not None:
            given = [arguments.check] if arguments.check else []
            check_output(output, [arguments.model, *given])
        if arguments.from_ == "loops":
            _compile_loops(arguments, options.targets, output)
        else:
            _compile_model(arguments, options, output)


def _given(arguments: argparse.Namespace) -> GivenOptions:
    """What the command says of the compilation."""
    said: dict[str, Any] = {field: getattr(arguments, attribute(field)) for field in ROWS}
    said["shapes"] = usage.profiles(arguments.shape)
    said["devices"] = usage.unique(arguments.device, "--device")
    lists = {field: tuple(said[field]) for field, row in ROWS.items() if row.value_type == "texts"}
    return given_options({**said, **lists, "targets": lists["targets"] or NOTHING_GIVEN.targets})


def _compile_model(
    arguments: argparse.Namespace, options: CompileOptions, output: str | None
) -> None:
    """The bundle of a model, or the text of a stage, and what there is to say of it."""
    outcome, seconds = _compile(arguments, options, output)
    if outcome.checked is not None and outcome.checked.differences:
        raise FailedCommand(outcome.checked.error(), {"check": outcome.checked.plain()})
    if output is None or arguments.to:
        _give_text(outcome.result, output, arguments)
    else:
        _report(outcome, arguments, output, seconds)


def _compile(
    arguments: argparse.Namespace, options: CompileOptions, output: str | None
) -> tuple[CompileOutcome, float]:
    """Compile, and show how it goes; return what came out, and in how many seconds."""
    from ingot_build_rules.engine.events.depfile import depfile_text
    from ingot_build_rules.making.stages.open_build import open_build
    from ingot_build_rules.making.stages.output_file import write_text
    from ingot_build_rules.tools.cli.building.build_progress import build_observer

    started = time.perf_counter()
    quiet = arguments.quiet or arguments.json
    with ExitStack() as stack:
        warnings: list[str] = []
        show = stack.enter_context(build_observer({}, quiet=quiet))
        settings = _settings(arguments, _without_failures(show, warnings), options.plugins)
        build = stack.enter_context(open_build(settings))
        outcome = _outcome(_started(build, arguments, options), arguments, output)
        if arguments.depfile is not None:
            sources = build.run(outcome.compiled.compilation.source_paths())
            files = (*sources, *map(os.path.abspath, files_of(_given(arguments))))
            write_text(arguments.depfile, depfile_text(str(output), files))
    return replace(outcome, warnings=tuple(warnings)), time.perf_counter() - started


def _without_failures(show: Observer, warnings: list[str]) -> Observer:
    """Show all but failures: the one there can be is told as the command's error. Warnings are put
    into ``told`` as well."""
    from ingot_build_rules.engine.events.events import ActionFinished, Message

    def observe(event: Event) -> None:
        if isinstance(event, Message) and event.level == "warning":
            warnings.append(event.text)
        if not (isinstance(event, ActionFinished) and event.status == "failed"):
            show(event)

    return observe


def _started(
    build: Scheduler, arguments: argparse.Namespace, options: CompileOptions
) -> CompiledModel:
    """The compilation of a model, or of the text of a stage."""
    from ingot_build_rules.making.stages.start_compilation import start_compilation, start_from_text

    if arguments.from_ is None:
        return start_compilation(build, arguments.model, options, arguments.max_bytes)
    return start_from_text(
        build, arguments.from_, arguments.model, options, arguments.weights, arguments.max_bytes
    )


def _compile_loops(
    arguments: argparse.Namespace, targets: Sequence[str], output: str | None
) -> None:
    """Kernels alone: their text, or the object of the one that there is."""
    from ingot_artifacts.store.atomic import atomic_file
    from ingot_build_rules.making.stages.from_text import read_text
    from ingot_build_rules.tools.text.loops_file import groups_text, kernel_object, read_groups

    groups = read_groups(read_text(arguments.model), targets)
    if output is None or arguments.to is not None:
        _give_text(groups_text(groups, arguments.to), output, arguments)
        return
    content = kernel_object(groups)
    with atomic_file(output) as file:
        file.write(content)
    if arguments.json:
        console.print_json({"stage": "object", "output": output, "text": None})


def _settings(
    arguments: argparse.Namespace, observe: Observer, plugins: tuple[PluginOption, ...]
) -> BuildSettings:
    from ingot_artifacts.store.layers import whole_address
    from ingot_build_rules.engine.events.events import Message
    from ingot_build_rules.making.stages.open_build import BuildSettings
    from ingot_build_rules.tools.workspace.action_events import ActionEvents

    return BuildSettings(
        cache_folder(arguments.cache),
        cache_trust(shared=arguments.cache_shared),
        tuple(map(whole_address, arguments.cache_below)),
        read_only=arguments.read_only,
        jobs=arguments.jobs,
        observers=ActionEvents(observe).observers(),
        makeflags=makeflags(),
        warn=lambda text: observe(Message("warning", text)),
        plugins=plugins,
        max_bytes=cache_max_bytes(arguments.cache_max),
        tell=lambda text: observe(Message("note", text)),
    )


def _outcome(
    compiled: CompiledModel, arguments: argparse.Namespace, output: str | None
) -> CompileOutcome:
    """Make what is asked for: the text of a stage, or the bundle's file."""
    if output is None or arguments.to:
        return CompileOutcome(compiled, _stage_text(compiled, arguments), {})
    digest, checked, proved = _saved(compiled, arguments, output)
    return CompileOutcome(compiled, digest, compiled.summary(), checked, proved)


def _saved(
    compiled: CompiledModel, arguments: argparse.Namespace, output: str
) -> tuple[str, CheckReport | None, Proved | None]:
    """Write the bundle; return its digest, what a check of it found, and what proved it."""
    if arguments.check is None and arguments.selftest is None:
        return compiled.save(output), None, None
    from ingot_build_rules.tools.check.save_proved import ProofChoices, save_proved
    from ingot_runtime.npz import read_npz

    inputs = read_npz(arguments.check) if arguments.check else None
    choices = ProofChoices(arguments.check is not None, inputs, arguments.selftest or 0)
    return save_proved(compiled, output, choices)


def _stage_text(compiled: CompiledModel, arguments: argparse.Namespace) -> str:
    """The text of a stage; the weights beside it are written where they are asked for."""
    from ingot_build_rules.making.stages.stage_weights import write_weights
    from ingot_build_rules.tools.text.stage_text import stage_text

    if arguments.weights is not None and arguments.from_ is None:
        write_weights(compiled, arguments.weights)
    return stage_text(compiled, arguments.to)


def _report(
    outcome: CompileOutcome, arguments: argparse.Namespace, output: str, seconds: float
) -> None:
    """Say what was made: on standard error where the bundle itself goes to standard output."""
    values = report_values(outcome, output, seconds)
    if arguments.json:
        console.print_json(values)
    elif not arguments.quiet:
        from ingot_build_rules.tools.cli.shell.device_notes import device_notes
        from ingot_build_rules.tools.cli.shell.portable_note import portable_note

        piped = arguments.output == STANDARD_OUTPUT
        shown = values | ({"output": "standard output"} if piped else {})
        lines = report_lines(shown, outcome.checked, outcome.proved)
        console.print_lines(*lines, file=sys.stderr if piped else sys.stdout)
        notes = device_notes(shown["output"], outcome.compiled.compilation.options)
        for note in filter(None, (portable_note(shown["output"], arguments.target), *notes)):
            console.print_note(note)


def _give_text(text: str, output: str | None, arguments: argparse.Namespace) -> None:
    """Write the text of a stage to a file, or print it."""
    if output is not None:
        from ingot_build_rules.making.stages.output_file import write_text

        write_text(output, text if text.endswith("\n") else text + "\n")
    if arguments.json:
        shown = text if output is None else None
        console.print_json({"stage": arguments.to, "output": output, "text": shown})
    elif output is None:
        console.print_listing(text.removesuffix("\n"))
