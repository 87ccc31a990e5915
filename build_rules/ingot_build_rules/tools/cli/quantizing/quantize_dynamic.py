"""Products of integers whose activations are rounded when the model runs, row by row, for the verb
``quantize``.

In: a model, the options of the command. Out: ``QuantizedModel``. Not done here: rewriting
(``ingot_compiler.quantizer``), running (``calibration``).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.measuring.calibration import calibration_files, compiled, distances
from ingot_build_rules.tools.cli.quantizing.quantize_error import judged
from ingot_build_rules.tools.cli.quantizing.quantized import QuantizedModel
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_compiler.quantizer.weight_layers import Model

_HEADING = "error of what each layer gives, rms:"
_ROUNDED = "quantized, each row by its own range:"


def quantize(given: Model, arguments: argparse.Namespace) -> QuantizedModel:
    """Round the operands of products by stored matrices; UserError where there is none."""
    from ingot_compiler.frontend.model.model_bytes import model_bytes, with_outputs
    from ingot_compiler.quantizer.prepare_model import prepare_model
    from ingot_compiler.quantizer.write_by_rows import row_layers, write_by_rows

    model, kept = prepare_model(given), tuple(arguments.keep or ())
    layers, left = row_layers(model, kept)
    if not layers:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left[:3])
        why, do = (
            reasons or "no product has a constant matrix",
            "quantize it with --calibrate alone",
        )
        raise UserError("nothing to quantize", arguments.model, why, do)
    made = write_by_rows(model, layers)
    files = calibration_files(arguments.calibrate) if arguments.calibrate else []
    outputs = [value.name for value in model.graph.output]
    names = [*(layer.result for layer in layers), *outputs]
    errors: dict[str, float] = {}
    report: dict[str, Any] = {
        "weights": "int8", "activations": "int8", "dynamic": True, "calls": len(files),
        "left_out": [{"node": name, "reason": reason} for name, reason in left],
    }  # fmt: skip

    def without(node: str) -> float:
        others = row_layers(model, (*kept, node))[0]
        changed = model_bytes(write_by_rows(model, others))
        with compiled(model_bytes(model)) as expected, compiled(changed) as got:
            return max(distances(outputs, files, expected, got).values(), default=0.0)

    if files:
        with (
            compiled(with_outputs(model, names)) as expected,
            compiled(with_outputs(made, names)) as got,
        ):
            errors = distances(names, files, expected, got)
    report["layers"] = [
        {"node": layer.name, "shape": list(layer.shape), "error": errors.get(layer.result)}
        for layer in layers
    ]
    report["outputs"] = [
        {"name": name, "error": errors[name]} for name in outputs if name in errors
    ]
    heading = _HEADING if files else _ROUNDED
    return QuantizedModel(model_bytes(made), judged(report, arguments, without), heading)
