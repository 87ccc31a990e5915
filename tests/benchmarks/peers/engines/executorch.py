"""ExecuTorch with XNNPACK: made from the PyTorch module, what XNNPACK takes is given to it.

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
    "executorch==1.5.1",
    "transformers==5.24.0",
    "diffusers==0.42.1",
)
MODULE = "executorch"
SUFFIX = ".pte"
_PARTITIONERS = "executorch.backends.xnnpack.partition.xnnpack_partitioner"


def convert(folder: str, made: str) -> None:
    """Write the engine's file."""
    from tests.benchmarks.networks import network

    source = network(os.path.basename(folder))
    values = tuple(source.inputs.values())
    program = importlib.import_module("torch").export.export(source.module, values)
    partitioner = importlib.import_module(_PARTITIONERS).XnnpackPartitioner()
    lowered = importlib.import_module("executorch.exir").to_edge_transform_and_lower(
        program, partitioner=[partitioner]
    )
    with open(made, "wb") as file:
        file.write(lowered.to_executorch().buffer)


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it with its own pool of threads held to so many."""
    torch = importlib.import_module("torch")
    runtime = importlib.import_module("executorch.runtime").Runtime.get()
    importlib.import_module(
        "executorch.extension.pybindings.portable_lib"
    )._unsafe_reset_threadpool(options["threads"])
    method = runtime.load_program(path).load_method("forward")
    values = [torch.from_numpy(value) for value in inputs.values()]
    return lambda: [result.numpy() for result in method.execute(values)]
