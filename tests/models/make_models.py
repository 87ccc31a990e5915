"""Small exports of common architectures with random weights, for ``tests/unit/end_to_end/test_models*.py``.

In: names of architectures (all without one), PyTorch, transformers and diffusers, which the tests
never need. Out: a folder per architecture with ``static.onnx``, for some ``dynamic.onnx`` (open
sizes), and ``cases.npz``: inputs and what PyTorch answers, in f32. Not done here: the networks
(``architectures.py``); running anything of ours.

    pip install torch==2.13.0 transformers==5.23.0 diffusers==0.42.1 onnxscript==0.7.2
    python tests/models/make_models.py [NAME ...]

Weights are drawn so that activations stay near one: attention is not uniform, gates are neither
open nor shut, normalisation has statistics to remove. Stack traces that the exporter leaves in the
file are taken out.
"""

# torch, transformers and diffusers are not in the environment of the checks.
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Mapping

import numpy as np
import onnx
import torch
from architectures import ARCHITECTURES, Architecture, detector_options
from torch import Tensor, nn

FOLDER = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 300_000
CASES_DYNAMIC = 5
KEPT = ("A_log", ".D", "dt_bias", "inv_freq")  # parameters whose start values mean something


def draw_weights(model: nn.Module) -> None:
    """Give every parameter and running statistic a value of its own."""
    for name, weight in sorted(model.named_parameters()):
        if name.endswith(KEPT):
            continue
        if weight.ndim >= 2:
            weight.normal_(0, (weight[0].numel() if weight.ndim > 1 else 1) ** -0.5)
        elif name.endswith("weight"):
            weight.uniform_(0.5, 1.5)
        else:
            weight.normal_(0, 0.1)
    for name, statistic in sorted(model.named_buffers()):
        if name.endswith("running_mean"):
            statistic.normal_(0, 0.1)
        elif name.endswith("running_var"):
            statistic.uniform_(0.5, 1.5)


def answers(model: nn.Module, feed: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    """Run PyTorch."""
    result = model(*feed.values())
    return result if isinstance(result, tuple) else (result,)


def strip(path: str) -> None:
    """Take stack traces and other notes of the exporter out of a file."""
    model = onnx.load(path)
    del model.metadata_props[:]
    graphs = [model.graph]
    for graph in graphs:
        del graph.metadata_props[:]
        for part in (
            *graph.node,
            *graph.input,
            *graph.output,
            *graph.value_info,
            *graph.initializer,
        ):
            del part.metadata_props[:]
            part.doc_string = ""
        graphs += [
            attribute.g
            for node in graph.node
            for attribute in node.attribute
            if attribute.HasField("g")
        ]
    onnx.save(model, path)


def export(
    name: str, made: Architecture, model: nn.Module, feed: Mapping[str, Tensor], dynamic: bool
) -> None:
    """Write one ``.onnx`` file."""
    options = detector_options() if made.options.get("detector") else dict(made.options)
    if dynamic:
        dims = {
            size: torch.export.Dim(size, min=low, max=max(64, high))
            for size, (low, high) in made.ranges.items()
        }
        options["dynamic_shapes"] = (
            tuple(
                {axis: dims[size] for axis, size in made.axes.get(key, {}).items()} for key in feed
            ),
        )
        if not hasattr(model, "outputs"):
            options["dynamic_shapes"] = options["dynamic_shapes"][0]
    path = os.path.join(FOLDER, name, "dynamic.onnx" if dynamic else "static.onnx")
    options.setdefault("dynamo", True)
    torch.onnx.export(
        model,
        tuple(feed.values()),
        path,
        input_names=list(feed),
        output_names=list(made.outputs),
        external_data=False,
        verbose=False,
        **options,
    )
    strip(path)


def build(name: str, made: Architecture) -> None:
    """Write the folder of one architecture.

    ``cases.npz`` has ``CASE/in/INPUT`` and ``CASE/out/OUTPUT``; CASE is ``static``, or a number for
    the dynamic export.
    """
    torch.manual_seed(sum(map(ord, name)))
    numbers = random.Random(name)
    os.makedirs(os.path.join(FOLDER, name), exist_ok=True)
    model = made.build().eval()
    draw_weights(model)
    feeds = {"static": made.feed(made.sizes)}
    export(name, made, model, feeds["static"], dynamic=False)
    if made.ranges:
        export(
            name,
            made,
            model,
            made.feed(
                {size: max(3, (low + high) // 2) for size, (low, high) in made.ranges.items()}
            ),
            dynamic=True,
        )
        for case in range(CASES_DYNAMIC):
            sizes = {
                size: low if case == 0 else numbers.randint(low, high)
                for size, (low, high) in made.ranges.items()
            }
            feeds[str(case)] = made.feed(sizes)
    arrays = {}
    for case, feed in feeds.items():
        arrays |= {f"{case}/in/{key}": value.numpy() for key, value in feed.items()}
        arrays |= {
            f"{case}/out/{key}": value.numpy()
            for key, value in zip(made.outputs, answers(model, feed), strict=True)
        }
    np.savez_compressed(os.path.join(FOLDER, name, "cases.npz"), **arrays)
    size_bytes = sum(entry.stat().st_size for entry in os.scandir(os.path.join(FOLDER, name)))
    largest = {
        key: round(float(np.abs(value).max()), 2)
        for key, value in arrays.items()
        if key.startswith("static/out") and value.size
    }
    print(f"{name}: {size_bytes // 1000} kB {largest}", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for chosen in sys.argv[1:] or list(ARCHITECTURES):
        build(chosen, ARCHITECTURES[chosen])
