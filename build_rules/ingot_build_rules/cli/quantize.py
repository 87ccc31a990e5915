"""Verb ``quantize``: a model whose weights are integers of 4 or 8 bits, scaled in blocks.

In: a model, perhaps inputs to measure with. Out: a model file, the error of each layer. Not done
here: rounding (``ingot_compiler.frontend``), running (the loader).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ingot_build_rules.cli import console
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ingot_compiler.frontend.quantise_model import LayerError
    from ingot_compiler.frontend.weight_layers import Model, WeightLayer

    Arrays = Mapping[str, npt.NDArray[Any]]

_BITS = {"int4": 4, "int8": 8}
_BLOCK_MIN = 16


def run(arguments: argparse.Namespace) -> int:
    """Write the new model and say what rounding changed."""
    from ingot_build_rules.compilation.kind_of_file import check_model_kind
    from ingot_build_rules.compilation.output_file import check_output
    from ingot_compiler.frontend.quantise_model import quantise_model
    from ingot_compiler.frontend.weight_layers import find_layers, load_model

    path, block = arguments.model, _block(arguments.block)
    check_model_kind(path)
    output = arguments.output or _output(path, arguments.weights)
    check_output(output, [path])
    model = load_model(path)
    layers, left = find_layers(model.graph, block)
    if not layers:
        raise _nothing(path, left)
    calibration = _calibration(model, layers, arguments.calibrate)
    bits = _BITS[arguments.weights]
    data, errors = quantise_model(model, layers, bits, block, calibration.squares)
    names = [value.name for value in model.graph.output]
    apart = calibration.errors(names, data)
    _write(output, data)
    values = {
        "model": path,
        "output": output,
        "weights": arguments.weights,
        "block": block,
        "model_bytes": model.ByteSize(),
        "output_bytes": len(data),
        "layers": [_layer_values(error) for error in errors],
        "left_out": [{"node": name, "reason": reason} for name, reason in left],
        "outputs": [{"name": name, "error": error} for name, error in apart.items()],
    }
    console.print_report(values, _lines(values), as_json=arguments.json)
    return 0


def _nothing(path: str, left: list[tuple[str, str]]) -> UserError:
    told = "; ".join(f"{name}: {reason}" for name, reason in left)
    do = "compile the model as it is, or choose another --block"
    why = told or "no product has a constant matrix"
    return UserError("nothing to quantize", path, why, do)


@dataclass(frozen=True, slots=True)
class _Calibration:
    """A call of the float model: what it was given and gave, with the mean squares of what layers
    multiply; all empty without one."""

    inputs: Arrays
    expected: Arrays
    squares: Mapping[str, npt.NDArray[np.float64]]

    def errors(self, names: list[str], model: bytes) -> dict[str, float]:
        """How far the outputs of another model are off, by name."""
        return _apart(names, self.expected, _outputs(model, self.inputs)) if self.expected else {}


def _calibration(model: Model, layers: list[WeightLayer], path: str | None) -> _Calibration:
    from ingot_compiler.frontend.quantise_model import with_activations
    from ingot_runtime.npz import read_npz

    if path is None:
        return _Calibration({}, {}, {})
    inputs = read_npz(path)
    expected = _outputs(with_activations(model, layers), inputs)
    squares = {layer.activation: _squares(expected[layer.activation]) for layer in layers}
    return _Calibration(inputs, expected, squares)


def _block(text: str) -> int:
    block = int(text) if text.isdigit() else 0
    if block < _BLOCK_MIN or block & (block - 1):
        why = f"expected a power of 2 of at least {_BLOCK_MIN}, got {text!r}"
        raise UserError("wrong value of --block", "command ingot quantize", why, "try --block 32")
    return block


def _output(path: str, weights: str) -> str:
    return f"{os.path.basename(path).removesuffix('.onnx')}.{weights}.onnx"


def _outputs(model: bytes, inputs: Arrays) -> Arrays:
    """What a model gives, compiled for this machine."""
    import ingot_runtime
    from ingot_build_rules.compilation.compile_model import compile_model
    from ingot_build_rules.compilation.options import make_options

    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "m.ingot")
        compile_model(model, make_options(["native"])).save(path)
        with ingot_runtime.load(path) as session:
            return session.run(dict(inputs))


def _squares(activation: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The mean square along the last axis."""
    import numpy as np

    rows = activation.reshape(-1, activation.shape[-1]).astype(np.float64)
    return np.asarray((rows * rows).mean(0) if len(rows) else np.ones(rows.shape[-1]))


def _apart(names: list[str], expected: Arrays, got: Arrays) -> dict[str, float]:
    """Rms of the difference by the rms of what was expected, for outputs of floats."""
    import numpy as np

    found: dict[str, float] = {}
    for name in names:
        wanted = expected[name].astype(np.float64)
        if expected[name].dtype.kind == "f" and wanted.size:
            rms = float(np.sqrt((wanted * wanted).mean()))
            apart = float(np.sqrt(((got[name] - wanted) ** 2).mean()))
            found[name] = apart / rms if rms else apart
    return found


def _write(path: str, data: bytes) -> None:
    from ingot_artifacts.store.atomic import atomic_file

    with atomic_file(path) as file:
        file.write(data)


def _layer_values(error: LayerError) -> dict[str, Any]:
    shape = [error.depth, error.columns]
    return {"node": error.name, "shape": shape, "error": error.weights}


def _lines(values: dict[str, Any]) -> list[str]:
    rows = [
        (f"  {layer['node']}", "x".join(map(str, layer["shape"])), f"{layer['error']:.2%}")
        for layer in values["layers"]
    ]
    left = [f"  {found['node']}: {found['reason']}" for found in values["left_out"]]
    outputs = [f"  {found['name']}: {found['error']:.2%}" for found in values["outputs"]]
    before, after = (console.format_bytes(values[name]) for name in ("model_bytes", "output_bytes"))
    return [
        "error of each layer, rms:",
        *console.format_table(rows, (1, 2)),
        *(["left out:", *left] if left else []),
        *(["error of each output, rms:", *outputs] if outputs else []),
        f"{values['output']}: {after}, was {before}",
    ]
