"""Weights as integers of 4 or 8 bits, scaled in blocks, for the verb ``quantize``.

In: a model, the options of the command. Out: ``QuantizedModel``. Not done here: rounding
(``ingot_compiler.frontend``), running (``calibration``).
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.measuring.calibration import (
    calibration_files,
    call_with,
    compiled,
    distances,
)
from ingot_build_rules.tools.cli.quantizing.quantize_error import judged
from ingot_build_rules.tools.cli.quantizing.quantized import QuantizedModel
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ingot_compiler.quantizer.quantize_model import LayerError, Squares
    from ingot_compiler.quantizer.weight_layers import Model, WeightLayer

_BITS = {"int4": 4, "int8": 8}
_BLOCK_MIN, _BLOCK = 16, "32"
_HEADING = "error of each layer, rms:"


def quantize(model: Model, arguments: argparse.Namespace) -> QuantizedModel:
    """Round the matrices of products; UserError where there is none."""
    from ingot_compiler.quantizer.quantize_model import quantize_model
    from ingot_compiler.quantizer.weight_layers import find_layers

    block = _block(arguments.block or _BLOCK)
    layers, left = find_layers(model.graph, block)
    if not layers:
        raise _nothing(arguments.model, left)
    files = calibration_files(arguments.calibrate) if arguments.calibrate else []
    squares = _squares(model, layers, files) if files else {}
    bits = _BITS[arguments.weights]
    data, errors = quantize_model(model, layers, bits, block, squares)
    report = {
        "weights": arguments.weights,
        "block": block,
        "calls": len(files),
        "layers": [_layer_values(error) for error in errors],
        "left_out": [{"node": name, "reason": reason} for name, reason in left],
        "outputs": _outputs(model, data, files) if files else [],
    }
    return QuantizedModel(data, judged(report, arguments, lambda _: None), _HEADING)


def _nothing(path: str, left: list[tuple[str, str]]) -> UserError:
    listed = "; ".join(f"{name}: {reason}" for name, reason in left)
    do = f"compile the model as it is: `ingot compile {shlex.quote(path)}`"
    why = listed or "no product has a constant matrix"
    return UserError("nothing to quantize", path, why, do)


def _block(text: str) -> int:
    block = int(text) if text.isdigit() else 0
    if block < _BLOCK_MIN or block & (block - 1):
        why = f"expected a power of 2 of at least {_BLOCK_MIN}, got {text!r}"
        raise UserError("wrong value of --block", "command ingot quantize", why, "try --block 32")
    return block


def _squares(
    model: Model, layers: Sequence[WeightLayer], files: Sequence[str]
) -> dict[str, Squares]:
    """The mean square of what layers multiply, along its last axis, over all calls."""
    from ingot_compiler.frontend.model.model_bytes import with_outputs

    names = [layer.activation for layer in layers]
    sums: dict[str, Squares] = {}
    counts = dict.fromkeys(names, 0)
    with compiled(with_outputs(model, names)) as call:
        for file in files:
            given = call_with(call, file)
            for name in counts:
                total, count = _sum_of_squares(given[name])
                sums[name] = sums.get(name, 0) + total
                counts[name] += count
    return {name: sums[name] / counts[name] if counts[name] else sums[name] + 1 for name in sums}


def _sum_of_squares(activation: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], int]:
    import numpy as np

    rows = activation.reshape(-1, activation.shape[-1]).astype(np.float64)
    return (rows * rows).sum(0), len(rows)


def _outputs(model: Model, data: bytes, files: Sequence[str]) -> list[dict[str, Any]]:
    """How far the outputs of the new model are off."""
    from ingot_compiler.frontend.model.model_bytes import model_bytes

    names = [value.name for value in model.graph.output]
    with compiled(model_bytes(model)) as expected, compiled(data) as got:
        found = distances(names, files, expected, got)
    return [{"name": name, "error": error} for name, error in found.items()]


def _layer_values(error: LayerError) -> dict[str, Any]:
    shape = [error.depth, error.columns]
    return {"node": error.name, "shape": shape, "error": error.weights}
