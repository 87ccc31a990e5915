"""Quantizes networks as the usual tool writes them: ONNX Runtime's own quantizer, its answers
beside the model.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``), kinds. Out: ``NAME-KIND/model.onnx``,
``inputs.npz``, ``outputs.npz``. Not done here: measuring (``bench_quantized``).

Needs an environment with onnxruntime. The inputs of a model are also what its ranges are taken
from.

    python tests/benchmarks/quantize_models.py MODELS FOLDER [NAME-KIND ...]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

IMAGES = ("resnet50", "mobilenet_v2", "efficientnet_b0", "segformer_b0", "vit_base")
TEXTS = ("bert_base", "minilm")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a model is quantized: the signs of activations and weights, scales per channel, the
    format; ``dynamic``: ranges are found at run time."""

    activations: str = "QUInt8"
    weights: str = "QInt8"
    per_channel: bool = False
    format: str = "QDQ"
    dynamic: bool = False


KINDS: dict[str, Kind] = {
    "u8s8": Kind(),
    "s8s8": Kind(activations="QInt8"),
    "u8u8": Kind(weights="QUInt8"),
    "channels": Kind(per_channel=True),
    "operators": Kind(format="QOperator"),
    "dynamic": Kind(dynamic=True),
}


class _Reader:
    """Gives the calibration the model's inputs, once."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._waiting = [inputs]

    def get_next(self) -> dict[str, Any] | None:
        """The next inputs, None behind the last."""
        return self._waiting.pop() if self._waiting else None


def _write(kind: Kind, source: str, target: str, inputs: dict[str, Any]) -> None:
    tool: Any = import_module("onnxruntime.quantization")
    weights = getattr(tool.QuantType, kind.weights)
    if kind.dynamic:
        tool.quantize_dynamic(source, target, weight_type=weights, per_channel=kind.per_channel)
        return
    tool.quantize_static(
        source,
        target,
        _Reader(inputs),
        quant_format=getattr(tool.QuantFormat, kind.format),
        activation_type=getattr(tool.QuantType, kind.activations),
        weight_type=weights,
        per_channel=kind.per_channel,
    )


def quantize(models: str, folder: str, name: str, kind: str) -> None:
    """Write one quantized network with its inputs and outputs."""
    runtime: Any = import_module("onnxruntime")
    prepare: Any = import_module("onnxruntime.quantization.shape_inference")
    place, inputs_file = os.path.join(folder, f"{name}-{kind}"), os.path.join(models, name)
    inputs = dict(np.load(os.path.join(inputs_file, "inputs.npz")))
    os.makedirs(place, exist_ok=True)
    target = os.path.join(place, "model.onnx")
    with tempfile.TemporaryDirectory() as work:
        prepared = os.path.join(work, "prepared.onnx")
        source = os.path.join(models, name, "model.onnx")
        prepare.quant_pre_process(source, prepared, skip_symbolic_shape=True)
        _write(KINDS[kind], prepared, target, inputs)
    shutil.copy(os.path.join(inputs_file, "inputs.npz"), place)
    session = runtime.InferenceSession(target, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    answers = dict(zip(names, session.run(names, inputs), strict=True))
    np.savez(os.path.join(place, "outputs.npz"), **answers)
    print(f"{name}-{kind}: {os.path.getsize(target) / 1e6:.1f} MB", flush=True)


def main() -> None:
    """Quantize the networks that are named, or all."""
    models, folder, *names = sys.argv[1:]
    static = [f"{name}-{kind}" for name in (*IMAGES, *TEXTS) for kind in KINDS]
    for item in names or [*static, "lstm_tagger-dynamic"]:
        name, _, kind = item.rpartition("-")
        if os.path.exists(os.path.join(models, name, "model.onnx")):
            quantize(models, folder, name, kind)


if __name__ == "__main__":
    main()
