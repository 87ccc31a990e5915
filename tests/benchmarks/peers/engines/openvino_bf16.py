"""OpenVINO with products of bf16, its own default on processors that have them. It reads ONNX.

In: a network's folder; then the model, inputs. Out: a link; calls. Not done here: what runs them
(``convert``, ``peer_child``), OpenVINO in f32 (``peer_child``).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

PACKAGES = ("openvino==2026.4.1",)
MODULE = "openvino"
SUFFIX = ".onnx"


def convert(folder: str, made: str) -> None:
    """The engine's file is the model."""
    os.symlink(os.path.join(folder, "model.onnx"), made)


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Compile it for one caller."""
    core = importlib.import_module(MODULE).Core()
    settings = {
        "INFERENCE_NUM_THREADS": options["threads"],
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16",
    }
    request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True)
