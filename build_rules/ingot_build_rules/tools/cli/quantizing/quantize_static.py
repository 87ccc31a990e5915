"""Activations and weights as integers of 8 bits, by the ranges of given inputs, for the verb
``quantize``.

In: a model, the options of the command. Out: ``QuantizedModel``. Not done here: what becomes
integers (``ingot_compiler.quantizer``), running (``calibration``).
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.measuring.calibration import (
    calibration_files,
    call_with,
    compiled,
    distances,
)
from ingot_build_rules.tools.cli.quantizing.quantize_error import CALLS_WANTED, judged
from ingot_build_rules.tools.cli.quantizing.quantized import QuantizedModel
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ingot_build_rules.tools.cli.measuring.calibration import Call
    from ingot_compiler.quantizer.choose_tensors import TensorPlan
    from ingot_compiler.quantizer.ranges import Parameters, Range
    from ingot_compiler.quantizer.weight_layers import Model

_HEADING = "error of what each layer gives, rms:"
_SIGNED = "int8"
_TOLD_MAX = 3  # products that nothing is made of


def quantize(given: Model, arguments: argparse.Namespace) -> QuantizedModel:
    """Put integers around products; UserError where there is none, or for unfit inputs."""
    from ingot_compiler.frontend.model.model_bytes import model_bytes, with_outputs
    from ingot_compiler.quantizer.choose_tensors import choose_tensors
    from ingot_compiler.quantizer.prepare_model import prepare_model
    from ingot_compiler.quantizer.write_integers import write_integers

    model = prepare_model(given)
    plan = choose_tensors(model, arguments.keep or ())
    _check(plan, arguments)
    files = calibration_files(arguments.calibrate)
    results = [layer.result for layer in plan.layers]
    names = [*results, *(value.name for value in model.graph.output)]
    measured = list(dict.fromkeys(plan.roots.values()))
    ranges, signed = arguments.ranges or "mse", arguments.activations == _SIGNED
    with compiled(with_outputs(model, [*measured, *names])) as call:
        found = _parameters(call, files, measured, ranges)
        made = write_integers(model, plan, found, signed=signed)
        with compiled(with_outputs(made, names)) as rounded:
            errors = distances(names, files, call, rounded)
        report = _report(plan, errors, model, arguments)

        def without(node: str) -> float | None:
            """A plan of fewer nodes asks for no other ranges, but where roots move."""
            fewer = choose_tensors(model, (*(arguments.keep or ()), node))
            if not fewer.layers or not found.keys() >= set(fewer.roots.values()):
                return None
            changed = write_integers(model, fewer, found, signed=signed)
            outputs = [value.name for value in model.graph.output]
            with compiled(model_bytes(changed)) as rounded:
                return max(distances(outputs, files, call, rounded).values(), default=0.0)

        judgement = judged(report, arguments, without)
    return QuantizedModel(model_bytes(made), judgement, _HEADING)


def _report(
    plan: TensorPlan, errors: Mapping[str, float], model: Model, arguments: argparse.Namespace
) -> dict[str, Any]:
    return {
        "weights": _SIGNED,
        "activations": arguments.activations or "uint8",
        "ranges": arguments.ranges or "mse",
        "calls": len(calibration_files(arguments.calibrate)),
        "calls_wanted": CALLS_WANTED,
        "layers": _layers(plan, errors),
        "left_out": [{"node": name, "reason": reason} for name, reason in plan.left],
        "outputs": _outputs(model, errors),
    }


def _check(plan: TensorPlan, arguments: argparse.Namespace) -> None:
    if plan.layers:
        return
    listed = "; ".join(f"{name}: {reason}" for name, reason in plan.left[:_TOLD_MAX])
    why = listed or "no product has constant weights"
    raise UserError(
        "nothing to quantize",
        arguments.model,
        why,
        f"compile the model as it is: `ingot compile {shlex.quote(arguments.model)}`",
    )


def _parameters(
    call: Call, files: Sequence[str], names: Sequence[str], method: str
) -> Mapping[str, Parameters]:
    """Scales and zero points by what the named tensors are in all calls."""
    from ingot_compiler.quantizer.ranges import METHODS, Range, parameters

    seen = {name: Range() for name in names}
    for file in files:
        given = call_with(call, file)
        for name in names:
            _widen(seen[name], given[name], name, file)
    if method != "minmax":
        for file in files:
            given = call_with(call, file)
            for name in names:
                seen[name].count_parts(given[name])
    for name in names:
        if not seen[name].count:
            why = "it has no elements in any of the calls"
            raise UserError(
                "nothing to calibrate with", f"tensor {name!r}", why, "give other inputs"
            )
    return {name: parameters(*METHODS[method](seen[name])) for name in names}


def _widen(seen: Range, array: npt.NDArray[Any], name: str, file: str) -> None:
    where = f"tensor {name!r}"
    if array.dtype != "float32":
        why = f"expected float32, got {array.dtype}"
        raise UserError(
            "a tensor cannot be quantized", where, why, "leave its reader in floats (--keep)"
        )
    if not seen.widen(array):
        why = f"expected finite numbers, got NaN or infinity for the inputs of {file}"
        do = "leave the file out, or the node that reads the tensor in floats (--keep)"
        raise UserError("a range has no limits", where, why, do)


def _layers(plan: TensorPlan, errors: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {"node": layer.name, "shape": list(layer.shape), "error": errors[layer.result]}
        for layer in plan.layers
        if layer.result in errors
    ]


def _outputs(model: Model, errors: Mapping[str, float]) -> list[dict[str, Any]]:
    names = [value.name for value in model.graph.output]
    return [{"name": name, "error": errors[name]} for name in names if name in errors]
