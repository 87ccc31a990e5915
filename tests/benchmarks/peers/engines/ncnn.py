"""ncnn: made from ONNX by pnnx, computed in f32. It has no batches: samples are one at a time.

In: a network's folder; then the made file, inputs. Out: the file, its weights beside it; calls. Not
done here: what runs them (``convert``, ``peer_child``).
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

PACKAGES = ("ncnn==1.0.20261020", "pnnx==20261020")
MODULE = "ncnn"
SUFFIX = ".ncnn.param"
_WEIGHTS = ".ncnn.bin"
_KINDS = {"f4": "f32", "i8": "i64", "i4": "i32"}


def convert(folder: str, made: str) -> None:
    """Write the engine's two files."""
    import numpy as np

    with np.load(os.path.join(folder, "inputs.npz")) as arrays:
        shapes = [
            f"[{','.join(map(str, value.shape))}]{_KINDS[value.dtype.str[1:]]}"
            for value in dict(arrays).values()
        ]
    program = os.path.join(os.path.dirname(sys.executable), "pnnx")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(made)) as work:
        model = os.path.join(work, "model.onnx")
        shutil.copyfile(os.path.join(folder, "model.onnx"), model)
        command = [program, model, f"inputshape={','.join(shapes)}", "fp16=0"]
        subprocess.run(command, check=True, cwd=work)
        stem = os.path.join(work, "model")
        os.replace(stem + _WEIGHTS, made.removesuffix(SUFFIX) + _WEIGHTS)
        os.replace(stem + SUFFIX, made)


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it with everything but f32 switched off."""
    import numpy as np

    engine = importlib.import_module("ncnn")
    network = engine.Net()
    network.opt.num_threads = options["threads"]
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(network.opt, f"use_{name}", False)
    for load, file in (
        (network.load_param, path),
        (network.load_model, path.removesuffix(SUFFIX) + _WEIGHTS),
    ):
        if load(file):
            raise ValueError(f"cannot load {os.path.basename(file)}")
    samples = [np.ascontiguousarray(value[0]) for value in inputs.values()]
    names, results = network.input_names(), network.output_names()

    def call() -> object:
        extractor = network.create_extractor()
        for name, sample in zip(names, samples, strict=True):
            extractor.input(name, engine.Mat(sample))
        return [np.array(_extracted(extractor, name)) for name in results]

    return call


def _extracted(extractor: Any, name: str) -> Any:
    failed, found = extractor.extract(name)
    if failed:
        raise ValueError(f"no result {name}")
    return found
