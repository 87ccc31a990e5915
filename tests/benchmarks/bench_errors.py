"""Errors of whole networks against an evaluation in float64, beside the engines they are compared with.

In: a folder of models (``NAME/model.onnx``, ``inputs.npz``), an interpreter with the engines. Out:
a table of root mean square errors by the root mean square of the outputs; the exit code is 1 where
ours is above that of the engine that is named. Not done here: times (``bench_zoo``).

    python tests/benchmarks/bench_errors.py --models FOLDER [--peer-python PYTHON] [--below ENGINE]
    [NAME ...]

The float64 form of a model has every f32 number as f64; Ingot compiles it, and PyTorch's stored
outputs (``outputs.npz``) show that it is the same function.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section

import ingot
import ingot_runtime

Arrays = Mapping[str, np.ndarray]
# Their scales, and what is around them, are f32 whatever the type of the data.
_FLOAT_OPERANDS = {"Resize": (1, 2), "Upsample": (1,)}
_PEERS = {
    "onnxruntime": """
import sys, numpy as np, onnxruntime
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], settings, providers=["CPUExecutionProvider"])
names = [item.name for item in session.get_outputs()]
np.savez(sys.argv[3], **dict(zip(names, session.run(names, dict(np.load(sys.argv[2]))))))
""",
    "openvino": """
import sys, numpy as np, openvino
model = openvino.Core().compile_model(sys.argv[1], "CPU", {
    "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
found = model(dict(np.load(sys.argv[2])))
np.savez(sys.argv[3], **{port.get_any_name(): found[port] for port in model.outputs})
""",
}


def _all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _all_graphs(attribute.g)


def _widened(tensor: TensorProto) -> TensorProto:
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def _widen_attributes(node: NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            attribute.t.CopyFrom(_widened(attribute.t))
        if attribute.name in ("to", "dtype", "stash_type") and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE


def widen(model: onnx.ModelProto) -> None:
    """Make every f32 number of a model f64."""
    for graph in _all_graphs(model.graph):
        kept = {
            node.input[at]
            for node in graph.node
            for at in _FLOAT_OPERANDS.get(node.op_type, ())
            if at < len(node.input)
        }
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and tensor.name not in kept:
                tensor.CopyFrom(_widened(tensor))
        for node in graph.node:
            if not kept.intersection(node.output):
                _widen_attributes(node)
        for value in (*graph.input, *graph.output, *graph.value_info):
            kind = value.type.tensor_type
            if kind.elem_type == TensorProto.FLOAT and value.name not in kept:
                kind.elem_type = TensorProto.DOUBLE


def exact_outputs(path: Path, inputs: Arrays) -> Arrays:
    """Evaluate in float64."""
    model: onnx.ModelProto = onnx.load(str(path))  # pyright: ignore[reportUnknownMemberType]
    widen(model)
    wide = {
        name: value.astype(np.float64) if value.dtype == np.float32 else value
        for name, value in inputs.items()
    }
    return ingot_runtime.load(ingot.compile(model).to_bytes()).run(wide)


def peer_outputs(python: str, engine: str, path: Path, inputs: Path) -> Arrays | None:
    """What an engine computes; None where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.npz"
        command = [python, "-c", _PEERS[engine], str(path), str(inputs), str(results)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        return dict(np.load(results))


def error(found: Arrays | None, exact: Arrays) -> float:
    """The root mean square of the differences by that of the numbers, of the worst output; NaN
    where there is nothing."""

    def of(name: str) -> float:
        assert found is not None
        difference: Any = found[name].astype(np.float64) - exact[name]
        return float(np.sqrt((difference**2).mean() / ((exact[name] ** 2).mean() + 1e-300)))

    floats = [name for name in exact if exact[name].dtype == np.float64]
    return float("nan") if found is None else max(map(of, floats))


def main() -> int:
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", required=True)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--below", choices=tuple(_PEERS), default="openvino")
    add_page_option(parser)
    options = parser.parse_args()
    print(
        f"{'network':16} {'ingot':>9} " + " ".join(f"{name:>12}" for name in (*_PEERS, "pytorch"))
    )
    above: list[str] = []
    rows: list[list[str]] = []
    models = Path(str(options.models))
    names: list[str] = options.names or sorted(os.listdir(models))
    for name in names:
        folder = models / name
        path, inputs = folder / "model.onnx", dict(np.load(folder / "inputs.npz"))
        exact = exact_outputs(path, inputs)
        ours = error(ingot_runtime.load(ingot.compile(path).to_bytes()).run(inputs), exact)
        python, given = options.peer_python, folder / "inputs.npz"
        theirs = {each: error(peer_outputs(python, each, path, given), exact) for each in _PEERS}
        stored = error(dict(np.load(folder / "outputs.npz")), exact)
        texts = (f"{value:12.2e}" for value in (*theirs.values(), stored))
        print(f"{name:16} {ours:9.2e} {' '.join(texts)}", flush=True)
        numbers = (ours, *theirs.values(), stored)
        rows.append([name, *(f"{1e7 * value:.1f}" for value in numbers)])
        above += [name] if ours > theirs[options.below] else []
    if options.page:
        write_section(("network", "Ingot", *_PEERS, "pytorch"), rows)
    print(f"above {options.below}: {', '.join(above) or 'none'}")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
