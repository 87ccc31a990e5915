"""Verb ``tune``: measure on this machine by which method each layer is fastest, into a file.

In: a model. Out: a tuning file. Not done here: timing (``view.tune_methods``), using the file
(``compile --tuning``).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingot_build_rules.cli import arrays, console
from ingot_build_rules.cli.options import usable_cpu_count

if TYPE_CHECKING:
    from ingot_build_rules.rules.tuning_option import TuningOption
    from ingot_build_rules.view.tune_methods import TunedLayer


def run(arguments: argparse.Namespace) -> int:
    """Compile the model once for each method, measure, write the file."""
    from ingot_build_rules.compilation.kind_of_file import check_model_kind
    from ingot_build_rules.compilation.output_file import check_output, write_text
    from ingot_build_rules.compilation.tuning_file import tuning_text

    check_model_kind(arguments.model)
    output = arguments.output or f"{os.path.splitext(arguments.model)[0]}.tune"
    check_output(output, [arguments.model])
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        target, paths = _compiled(arguments, folder)
        layers = _measured(arguments, paths)
    write_text(output, tuning_text(target, [_line(layer) for layer in layers]))
    changed = sum(layer.method != layer.usual for layer in layers)
    report = {
        "model": arguments.model,
        "output": output,
        "target": target,
        "layers": [{**asdict(layer), "seconds": dict(layer.seconds)} for layer in layers],
    }
    found = f"{console.counted(len(layers), 'layer')} with a choice of methods on {target}"
    lines = [
        f"{output}: {found}, {changed} by another one than without measuring",
        *(f"  {name}: {method}  ({note})" for name, method, note in map(_line, layers)),
    ]
    console.print_report(report, lines, as_json=arguments.json)
    return 0


def _compiled(arguments: argparse.Namespace, folder: str) -> tuple[str, Mapping[str, str]]:
    """Return the target, and a bundle for each method: "" is the usual choice."""
    from ingot_build_rules.compilation.open_build import BuildSettings, open_build
    from ingot_build_rules.compilation.options import make_options
    from ingot_build_rules.compilation.start_compilation import start_compilation
    from ingot_build_rules.rules.tuning_option import ALL_LAYERS, TuningOption
    from ingot_build_rules.workspace.cache_folder import cache_folder, cache_trust
    from ingot_compiler.backends.host.choose_winograd import METHODS

    (target,) = make_options([arguments.target], precision=arguments.precision).targets
    wishes: dict[str, TuningOption | None] = {"": None}
    for method in METHODS:
        wishes[method] = TuningOption(target, ((ALL_LAYERS, method),))
    trust = cache_trust(shared=arguments.cache_shared)
    settings = BuildSettings(cache_folder(arguments.cache), trust, jobs=usable_cpu_count())
    paths: dict[str, str] = {}
    with open_build(settings) as build:
        for method, tuning in wishes.items():
            paths[method] = os.path.join(folder, f"{method or 'usual'}.ingot")
            options = make_options([target], precision=arguments.precision, tuning=tuning)
            start_compilation(build, arguments.model, options).save(paths[method])
    return target, paths


def _measured(arguments: argparse.Namespace, paths: Mapping[str, str]) -> Sequence[TunedLayer]:
    import ingot_runtime
    from ingot_build_rules.view.tune_methods import tune_methods

    with ingot_runtime.load(paths[""]) as session:
        feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    methods = {method: path for method, path in paths.items() if method}
    return tune_methods(methods, paths[""], feed, arguments.threads, arguments.rounds)


def _line(layer: TunedLayer) -> tuple[str, str, str]:
    """The layer's name and method, and the times of all methods, the shortest first."""
    ordered = sorted(layer.seconds.items(), key=lambda pair: pair[1])
    times = [f"{method} {console.format_seconds(seconds)}" for method, seconds in ordered]
    return layer.node, layer.method, ", ".join(times)
