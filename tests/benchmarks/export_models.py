"""Exports networks of the measurements, PyTorch's own answers beside them. Without names, those of
the speed table; ``all``: each.

In: a folder, names. Out: ``NAME/model.onnx``, ``inputs.npz``, ``outputs.npz``. Not done here: the
networks (``networks``), measuring.

Needs an environment of its own:
``pip install torch==2.13.0 onnx onnxscript transformers diffusers onnxruntime``.

    python tests/benchmarks/export_models.py FOLDER [NAME ... | all]
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.networks import NETWORKS, SPEED_TABLE, network


def export(name: str, folder: str) -> None:
    """Write one network with its inputs and outputs."""
    torch: Any = import_module("torch")
    made = network(name)
    place = os.path.join(folder, name)
    os.makedirs(place, exist_ok=True)
    values = tuple(made.inputs.values())
    wanted: Any = made.module(*values)
    if len(made.outputs) == 1:
        wanted = (wanted,)
    path = os.path.join(place, "model.onnx")
    options: dict[str, Any] = {"dynamo": True, "external_data": False, **made.exporting}
    names = {"input_names": list(made.inputs), "output_names": list(made.outputs)}
    torch.onnx.export(made.module, values, path, **names, **options)
    for file, arrays in (
        ("inputs.npz", made.inputs),
        ("outputs.npz", dict(zip(made.outputs, wanted, strict=True))),
    ):
        plain = {key: value.numpy() for key, value in arrays.items()}
        np.savez(os.path.join(place, file), allow_pickle=False, **plain)
    print(f"{path}: {os.path.getsize(path) / 1e6:.0f} MB")


if __name__ == "__main__":
    chosen = sys.argv[2:] or SPEED_TABLE
    for wanted_name in NETWORKS if "all" in chosen else chosen:
        export(wanted_name, sys.argv[1])
