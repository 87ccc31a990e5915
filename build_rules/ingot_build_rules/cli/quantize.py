"""Verb ``quantize``: a model whose weights are integers, and with inputs to calibrate with perhaps
its activations.

In: the words of the command. Out: a model file, the error of each layer. Not done here: weights in
blocks (``quantize_blocks``), activations (``quantize_static``).
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ingot_build_rules.cli import console
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_compiler.frontend.weight_layers import Model

_OF_BLOCKS, _OF_STATIC = ("block",), ("activations", "ranges", "keep")


def run(arguments: argparse.Namespace) -> int:
    """Write the new model and say what rounding changed."""
    from ingot_build_rules.cli import quantize_blocks, quantize_static
    from ingot_build_rules.compilation.kind_of_file import check_model_kind
    from ingot_build_rules.compilation.output_file import check_output
    from ingot_compiler.frontend.weight_layers import load_model

    _check(arguments)
    path = arguments.model
    check_model_kind(path)
    output = arguments.output or _output(path, arguments.weights or "static")
    check_output(output, [path])
    model = load_model(path)
    quantise = quantize_blocks.quantise if arguments.weights else quantize_static.quantise
    made = quantise(model, arguments)
    _write(output, made.data)
    values = {"model": path, "output": output, **_sizes(model, made.data), **made.told}
    console.print_report(values, _lines(values, made.heading), as_json=arguments.json)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options of one kind of quantisation beside the other."""
    others = _OF_STATIC if arguments.weights else _OF_BLOCKS
    wrong = [f"--{name}" for name in others if getattr(arguments, name)]
    if not arguments.weights and not arguments.calibrate:
        why = "expected --weights, for weights alone, or --calibrate, for activations, too"
        do = "add --weights int8, or --calibrate F.npz"
        raise UserError("nothing says what to quantize", "command ingot quantize", why, do)
    if wrong:
        why = "it belongs to " + (
            "a command without --weights" if arguments.weights else "--weights"
        )
        do = f"leave {wrong[0]} out"
        raise UserError("an option without effect", f"option {wrong[0]}", why, do)


def _output(path: str, kind: str) -> str:
    ending = "int8" if kind == "static" else kind
    return f"{os.path.basename(path).removesuffix('.onnx')}.{ending}.onnx"


def _sizes(model: Model, data: bytes) -> dict[str, int]:
    return {"model_bytes": model.ByteSize(), "output_bytes": len(data)}


def _write(path: str, data: bytes) -> None:
    from ingot_artifacts.store.atomic import atomic_file

    with atomic_file(path) as file:
        file.write(data)


def _lines(values: dict[str, Any], heading: str) -> list[str]:
    rows = [
        (f"  {layer['node']}", "x".join(map(str, layer["shape"])), f"{layer['error']:.2%}")
        for layer in values["layers"]
    ]
    left = [f"  {found['node']}: {found['reason']}" for found in values["left_out"]]
    outputs = [f"  {found['name']}: {found['error']:.2%}" for found in values["outputs"]]
    before, after = (console.format_bytes(values[name]) for name in ("model_bytes", "output_bytes"))
    return [
        heading,
        *console.format_table(rows, (1, 2)),
        *(["left out:", *left] if left else []),
        *(["error of each output, rms:", *outputs] if outputs else []),
        f"{values['output']}: {after}, was {before}",
    ]
