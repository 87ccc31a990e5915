"""MNN: made from ONNX by its converter, with products and sums in f32.

In: a network's folder; then the made file, inputs. Out: the file; calls. Not done here: what runs
them (``convert``, ``peer_child``).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

PACKAGES = ("MNN==3.6.1",)
MODULE = "MNN"
SUFFIX = ".mnn"


def convert(folder: str, made: str) -> None:
    """Write the engine's file. The program ``mnnconvert`` is a wrapper that installs a package with
    whatever ``pip`` it finds and reports to its makers, so what it wraps is called."""
    model = os.path.join(folder, "model.onnx")
    words = ["-f", "ONNX", "--modelFile", model, "--MNNModel", made, "--bizCode", "none"]
    importlib.import_module(MODULE)
    importlib.import_module("_tools").mnnconvert(["mnnconvert", *words])


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it for one caller; inputs are written in each call."""
    expr, nn = importlib.import_module("MNN.expr"), importlib.import_module("MNN.nn")
    settings = {"backend": "CPU", "precision": "high", "numThread": options["threads"]}
    manager = nn.create_runtime_manager((settings,))
    names = list(inputs), options["outputs"]
    network = nn.load_module_from_file(path, *names, runtime_manager=manager)
    kinds = {"f": (expr.float, "f4"), "i": (expr.int, "i4")}
    values = [value.astype(kinds[value.dtype.kind][1]) for value in inputs.values()]
    places = [
        expr.placeholder(list(value.shape), expr.NCHW, kinds[value.dtype.kind][0])
        for value in inputs.values()
    ]

    def call() -> object:
        for place, value in zip(places, values, strict=True):
            place.write(value)
        return [_plain(expr, result).read() for result in network.forward(places)]

    return call


def _plain(expr: Any, result: Any) -> Any:
    """A result in the order of ONNX."""
    return expr.convert(result, expr.NCHW) if result.data_format == expr.NC4HW4 else result
