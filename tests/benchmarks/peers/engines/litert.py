"""LiteRT (TensorFlow Lite) with XNNPACK: made from the PyTorch module by ``litert_torch``.

In: a network's folder, of which the name counts; then the made file, inputs. Out: the file; calls.
Not done here: what runs them (``convert``, ``peer_child``).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

PACKAGES = (
    "torch==2.13.0",
    "litert-torch==0.10.0",
    "ai-edge-litert==2.3.0",
    "transformers==5.24.0",
    "diffusers==0.42.1",
)
MODULE = "ai_edge_litert"
SUFFIX = ".tflite"


def convert(folder: str, made: str) -> None:
    """Write the engine's file."""
    from tests.benchmarks.networks import network

    source = network(os.path.basename(folder))
    values = tuple(source.inputs.values())
    importlib.import_module("litert_torch").convert(source.module, values).export(made)


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it; inputs are written and results copied in each call."""
    engine = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = engine.Interpreter(model_path=path, num_threads=options["threads"])
    interpreter.allocate_tensors()
    # Their names end in numbers, by which they are in the order of the module's arguments.
    places = sorted(interpreter.get_input_details(), key=lambda detail: detail["name"])
    results = sorted(interpreter.get_output_details(), key=lambda detail: detail["name"])
    values = [
        value.astype(place["dtype"]) for place, value in zip(places, inputs.values(), strict=True)
    ]

    def call() -> object:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(result["index"]) for result in results]

    return call
