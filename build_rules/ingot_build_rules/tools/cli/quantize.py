"""Verb ``quantize``: a model whose weights are integers, and with inputs to calibrate with perhaps
its activations.

In: the words of the command. Out: a model file, the error of each layer. Not done here: weights in
blocks (``quantize_blocks``), activations (``quantize_static``, ``quantize_dynamic``).
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.quantizing.quantize_error import proposal_line
from ingot_build_rules.tools.cli.shell import console
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_compiler.quantizer.weight_layers import Model

# What belongs to one way to quantize: its name, and the options that say nothing of the others.
_OPTIONS = {
    "weights": ("block", "calibrate", "max_error"),
    "dynamic": ("keep", "calibrate", "max_error"),
    "static": ("activations", "ranges", "keep", "calibrate", "max_error"),
}


def run(arguments: argparse.Namespace) -> int:
    """Write the new model and say what rounding changed."""
    from ingot_build_rules.making.stages.kind_of_file import check_model_kind
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.cli.quantizing import (
        quantize_blocks,
        quantize_dynamic,
        quantize_static,
    )
    from ingot_compiler.quantizer.weight_layers import load_model

    way = _checked(arguments)
    path = arguments.model
    check_model_kind(path)
    output = arguments.output or _output(path, arguments.weights or "int8")
    check_output(output, [path])
    model = load_model(path)
    ways = {"weights": quantize_blocks, "dynamic": quantize_dynamic, "static": quantize_static}
    made = ways[way].quantize(model, arguments)
    _write(output, made.data)
    values: dict[str, Any] = {
        "model": path,
        "output": output,
        **_sizes(model, made.data),
        **made.report,
    }
    console.print_report(values, _lines(values, made.heading), as_json=arguments.json)
    for line in values["warnings"]:
        console.print_note(f"warning: {line}")
    return 0


def _checked(arguments: argparse.Namespace) -> str:
    """Which way to quantize; options of another one beside it are refused."""
    where, none = "command ingot quantize", "nothing says what to quantize"
    if not (arguments.weights or arguments.dynamic or arguments.calibrate):
        why = (
            "expected --calibrate, for activations by their ranges, --dynamic, for activations "
            "by their rows, or --weights, for weights alone"
        )
        raise UserError(none, where, why, "add --dynamic")
    way = "weights" if arguments.weights else "dynamic" if arguments.dynamic else "static"
    every = dict.fromkeys(option for options in _OPTIONS.values() for option in options)
    others = [name for name in (*every, "dynamic") if name not in (*_OPTIONS[way], way)]
    wrong = [f"--{name}" for name in others if getattr(arguments, name)]
    if wrong:
        owner = next(name for name, options in _OPTIONS.items() if wrong[0][2:] in (*options, name))
        options = {"weights": "--weights", "dynamic": "--dynamic", "static": "--calibrate alone"}
        why, do = f"it belongs to {options[owner]}", f"leave {wrong[0]} out"
        raise UserError("an option without effect", f"option {wrong[0]}", why, do)
    if arguments.max_error and not arguments.calibrate:
        why, do = "nothing is measured without calls", "give some by --calibrate"
        raise UserError("an option without effect", "option --max-error", why, do)
    return way


def _output(path: str, kind: str) -> str:
    return f"{os.path.basename(path).removesuffix('.onnx')}.{kind}.onnx"


def _sizes(model: Model, data: bytes) -> dict[str, int]:
    return {"model_bytes": model.ByteSize(), "output_bytes": len(data)}


def _write(path: str, data: bytes) -> None:
    from ingot_artifacts.store.atomic import atomic_file

    with atomic_file(path) as file:
        file.write(data)


def _percentage(error: float | None) -> str:
    return "" if error is None else f"{error:.2%}"


def _calls(values: dict[str, Any]) -> str:
    given, wanted = console.counted(values["calls"], "call"), values["calls_wanted"]
    more = f"; some {wanted} are wanted, as different as the inputs will be"
    return f"ranges of {given}{more if values['calls'] < wanted else ''}"


def _lines(values: dict[str, Any], heading: str) -> list[str]:
    rows = [
        (f"  {layer['node']}", "x".join(map(str, layer["shape"])), _percentage(layer["error"]))
        for layer in values["layers"]
    ]
    left = [f"  {found['node']}: {found['reason']}" for found in values["left_out"]]
    outputs = [f"  {found['name']}: {found['error']:.2%}" for found in values["outputs"]]
    proposals = [f"  {proposal_line(each)}" for each in values["proposals"]]
    before, after = (console.format_bytes(values[name]) for name in ("model_bytes", "output_bytes"))
    return [
        heading,
        *console.format_table(rows, (1, 2)),
        *(["left out:", *left] if left else []),
        *(["error of each output, rms:", *outputs] if outputs else []),
        *([_calls(values)] if "calls_wanted" in values else []),
        *(["left in floats, a node that costs much:", *proposals] if proposals else []),
        f"{values['output']}: {after}, was {before}",
    ]
