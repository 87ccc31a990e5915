"""Verb ``tune``: measure on this machine by which method each layer is fastest, into a file.

In: a model, or a project whose bundles say where their files lie. Out: tuning files. Not done here:
timing (``view.tune_methods``), a project's bundles (``tune_project``), using a file
(``compile --tuning``).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.measuring.tune_project import Measurement, is_project, measurements
from ingot_build_rules.tools.cli.shell import arrays, console
from ingot_build_rules.tools.cli.shell.options import usable_cpu_count
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_build_rules.tools.view.tune_methods import TunedLayer


def run(arguments: argparse.Namespace) -> int:
    """Compile each model once for each method, measure, write its file."""
    if not is_project(arguments.model):
        subject = _of_model(arguments)
        _check_outputs([subject])
        report = _tuned(subject, arguments)
        console.print_report(
            {"model": arguments.model, **report}, _lines(report), as_json=arguments.json
        )
        return 0
    subjects = measurements(arguments)
    _check_outputs(subjects)
    if len(subjects) > 1:
        _check_inputs(subjects, arguments)
    bundles = [{"bundle": each.bundle, **_tuned(each, arguments)} for each in subjects]
    lines = [line for report in bundles for line in _lines(report)]
    values = {"project": arguments.model, "bundles": bundles}
    console.print_report(values, lines, as_json=arguments.json)
    return 0


def _of_model(arguments: argparse.Namespace) -> Measurement:
    from ingot_build_rules.making.options.options import make_options
    from ingot_build_rules.making.stages.kind_of_file import check_model_kind
    from ingot_compiler.ir.precision import F32

    check_model_kind(arguments.model)
    output = arguments.output or f"{os.path.splitext(arguments.model)[0]}.tune"
    precision = arguments.precision or F32
    options = make_options([arguments.target or "native"], precision=precision)
    return Measurement("", arguments.model, output, options, (arguments.model,))


def _check_outputs(subjects: Sequence[Measurement]) -> None:
    """Refuse bad places, and targets for other processors, before the first measurement."""
    from ingot_build_rules.making.options.tuning_file import require_class
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_compiler.targets.target import parse_target
    from ingot_runtime.loader.cpu import processor_model

    for subject in subjects:
        check_output(subject.output, subject.kept)
        (target,) = subject.options.targets
        require_class(parse_target(target), processor_model(), OptionRef("target", target))


def _check_inputs(subjects: Sequence[Measurement], arguments: argparse.Namespace) -> None:
    """Call each model once: inputs that do not fit one of them are refused before the file of
    another is written."""
    import ingot_runtime

    for subject in subjects:
        with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
            path = _compiled(subject, arguments, folder, ())[""]
            try:
                with ingot_runtime.load(path, threads=arguments.threads) as session:
                    session.run(arrays.read_inputs(session, arguments.inputs, arguments.shape))
            except IngotError as error:
                raise error.at(f"[bundle.{subject.bundle}], {error.where}") from None


def _tuned(subject: Measurement, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one model and write its file; return what was found."""
    from ingot_build_rules.making.options.tuning_file import tuning_text
    from ingot_build_rules.making.stages.output_file import write_text
    from ingot_compiler.kernels.products.tuned import METHODS
    from ingot_runtime.loader.cpu import processor_model

    (target,) = subject.options.targets
    processor = processor_model()
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        layers = _measured(arguments, _compiled(subject, arguments, folder, METHODS))
    text = tuning_text(target, processor, [_line(layer) for layer in layers])
    write_text(subject.output, text)
    found = [{**asdict(layer), "seconds": dict(layer.seconds)} for layer in layers]
    return {
        "output": subject.output,
        "target": target,
        "processor": processor,
        "layers": found,
    }


def _lines(report: Mapping[str, Any]) -> list[str]:
    """What was found, for people."""
    from ingot_build_rules.tools.view.tune_methods import TunedLayer

    layers = [TunedLayer(**layer) for layer in report["layers"]]
    changed = sum(layer.method != layer.usual for layer in layers)
    found = (
        f"{console.counted(len(layers), 'layer')} with a choice of methods on {report['target']}"
    )
    return [
        f"{report['output']}: {found}, {changed} by another one than without measuring",
        *(f"  {name}: {method}  ({note})" for name, method, note in map(_line, layers)),
    ]


def _compiled(
    subject: Measurement, arguments: argparse.Namespace, folder: str, methods: Sequence[str]
) -> Mapping[str, str]:
    """Return a bundle for each method, and "" for the usual choice."""
    from ingot_build_rules.making.options.tuning_option import ALL_LAYERS, TuningOption
    from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
    from ingot_build_rules.making.stages.start_compilation import start_compilation
    from ingot_build_rules.tools.workspace.cache_folder import (
        cache_folder,
        cache_max_bytes,
        cache_trust,
    )

    (target,) = subject.options.targets
    wishes: dict[str, TuningOption | None] = {"": None}
    for method in methods:
        wishes[method] = TuningOption(target, ((ALL_LAYERS, method),))
    trust = cache_trust(shared=arguments.cache_shared)
    settings = BuildSettings(
        cache_folder(arguments.cache),
        trust,
        jobs=usable_cpu_count(),
        max_bytes=cache_max_bytes(),
        tell=console.print_note,
    )
    paths: dict[str, str] = {}
    with open_build(settings) as build:
        for method, tuning in wishes.items():
            paths[method] = os.path.join(folder, f"{method or 'usual'}.ingot")
            options = replace(subject.options, tuning=tuning)
            start_compilation(build, subject.model, options).save(paths[method])
    return paths


def _measured(arguments: argparse.Namespace, paths: Mapping[str, str]) -> Sequence[TunedLayer]:
    import ingot_runtime
    from ingot_build_rules.tools.view.tune_methods import tune_methods

    with ingot_runtime.load(paths[""]) as session:
        feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    methods = {method: path for method, path in paths.items() if method}
    return tune_methods(methods, paths[""], feed, arguments.threads, arguments.rounds)


def _line(layer: TunedLayer) -> tuple[str, str, str]:
    """The layer's name and method, and the times of all methods, the shortest first."""
    ordered = sorted(layer.seconds.items(), key=lambda pair: pair[1])
    times = [f"{method} {console.format_seconds(seconds)}" for method, seconds in ordered]
    return layer.node, layer.method, ", ".join(times)
