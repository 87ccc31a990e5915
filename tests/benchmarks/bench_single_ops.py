"""Single ops as models beside the better of ONNX Runtime and OpenVINO.

In: an interpreter with both peers. Out: a table; the exit code is 1 when a row is above its limit.
Not done here: kernels without their call (``bench_kernels``), ops for which the
algorithm decides (``bench_algorithms``).

    taskset -c 0 python tests/benchmarks/bench_single_ops.py [--peer-python PYTHON] [--rounds N]
    [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section
from tests.benchmarks.peers.turns import interleave

from ingot_build_rules.tools.view.peer import Peer

Array = npt.NDArray[np.float32]
LIMITS = {"softmax": 1.05, "dft": 1.1}
OTHER_MAX = 1.0
OPSET = 20


def _model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, npt.NDArray[Any]],
) -> ModelProto:
    def value(
        name: str, shape: Sequence[int] | None, dtype: int = TensorProto.FLOAT
    ) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        list(nodes), "op", [value(name, shape) for name, shape in inputs.items()], [value("y", None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _normal(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def depthwise(channels: int, size: int, kernel: int, stride: int) -> ModelProto:
    """A depthwise convolution on a square image."""
    pad = kernel // 2
    node = helper.make_node(
        "Conv",
        ["x", "w", "b"],
        ["y"],
        group=channels,
        kernel_shape=[kernel] * 2,
        pads=[pad] * 4,
        strides=[stride] * 2,
    )
    weights = {"w": _normal(channels, 1, kernel, kernel), "b": _normal(channels)}
    return _model([node], {"x": (1, channels, size, size)}, weights)


def rows(op: str, height: int, width: int) -> ModelProto:
    """An op on rows."""
    if op == "LayerNormalization":
        node = helper.make_node(op, ["x", "s", "b"], ["y"], axis=-1)
        return _model([node], {"x": (height, width)}, {"s": _normal(width), "b": _normal(width)})
    return _model([helper.make_node(op, ["x"], ["y"])], {"x": (height, width)}, {})


def attention(heads: int, length: int, depth: int) -> ModelProto:
    """Scores, softmax and weighted sum as exporters write them."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    shape = (1, heads, length, depth)
    return _model(
        nodes, {"q": shape, "k": shape, "v": shape}, {"scale": np.array(depth**-0.5, np.float32)}
    )


def stft(seconds: int, length: int) -> ModelProto:
    """The spectrogram of speech: 16,000 samples a second, 160 from frame to frame."""
    node = helper.make_node("STFT", ["x", "step", "w"], ["y"])
    window = np.hanning(length).astype(np.float32)
    weights: dict[str, npt.NDArray[Any]] = {"step": np.array(160, np.int64), "w": window}
    return _model([node], {"x": (1, 16000 * seconds, 1)}, weights)


def dft(batch: int, length: int) -> ModelProto:
    """Half of the spectrum of real rows."""
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], onesided=1)
    return _model([node], {"x": (batch, length, 1)}, {"axis": np.array(1, np.int64)})


CASES = {
    "depthwise 3x3 144@56": lambda: depthwise(144, 56, 3, 1),
    "depthwise 3x3 384@14": lambda: depthwise(384, 14, 3, 1),
    "depthwise 3x3 s2 144@56": lambda: depthwise(144, 56, 3, 2),
    "depthwise 7x7 96@56": lambda: depthwise(96, 56, 7, 1),
    "depthwise 7x7 384@14": lambda: depthwise(384, 14, 7, 1),
    "layer norm 128x768": lambda: rows("LayerNormalization", 128, 768),
    "layer norm 3136x96": lambda: rows("LayerNormalization", 3136, 96),
    "gelu 128x3072": lambda: rows("Gelu", 128, 3072),
    "attention 12x128x64": lambda: attention(12, 128, 64),
    "attention 12x192x64": lambda: attention(12, 192, 64),
    "attention 2x1024x64": lambda: attention(2, 1024, 64),
    "attention 6x1504x64": lambda: attention(6, 1504, 64),
    "softmax 1536x128": lambda: rows("Softmax", 1536, 128),
    "softmax 512x1024": lambda: rows("Softmax", 512, 1024),
    "stft 1 s of 400": lambda: stft(1, 400),
    "stft 10 s of 400": lambda: stft(10, 400),
    "stft 1 s of 512": lambda: stft(1, 512),
    "stft 10 s of 512": lambda: stft(10, 512),
    "dft 64x256": lambda: dft(64, 256),
    "dft 1x1009": lambda: dft(1, 1009),
    "dft 64x1009": lambda: dft(64, 1009),
    "dft 1x4096": lambda: dft(1, 4096),
    "dft 64x4096": lambda: dft(64, 4096),
    "dft 1x65536": lambda: dft(1, 65536),
}


def measure(name: str, python: str, rounds: int, work: str) -> tuple[float, list[float]]:
    """Seconds per call: ours, each peer's; OpenVINO has no STFT."""
    import ingot

    model = CASES[name]()
    paths = {suffix: os.path.join(work, f"case.{suffix}") for suffix in ("onnx", "ingot", "npz")}
    with open(paths["onnx"], "wb") as file:
        file.write(model.SerializeToString())
    ingot.compile(model).save(paths["ingot"])
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }
    inputs: dict[str, npt.ArrayLike] = {key: _normal(*shape) for key, shape in shapes.items()}
    np.savez(paths["npz"], allow_pickle=False, **inputs)
    peers = [Peer("ingot", sys.executable, paths["ingot"], paths["npz"], 1)]
    kinds = ("onnxruntime",) if name.startswith("stft") else ("onnxruntime", "openvino")
    peers += [Peer(kind, python, paths["onnx"], paths["npz"], 1) for kind in kinds]
    ours, *theirs = interleave(peers, rounds, 0.05)
    for peer in peers:
        peer.close()
    return ours, theirs


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=15)
    add_page_option(parser)
    options = parser.parse_args()
    good = True
    rows: list[list[str]] = []
    print(f"{'op':26} {'ingot us':>9} {'onnxruntime':>12} {'openvino':>9}   ratio to the better")
    with tempfile.TemporaryDirectory() as work:
        for name in options.names or CASES:
            ours, theirs = measure(name, options.peer_python, options.rounds, work)
            ratio, limit = ours / min(theirs), LIMITS.get(name.split()[0], OTHER_MAX)
            good &= ratio <= limit
            verdict = "ok" if ratio <= limit else f"above {limit}"
            rows.append([name, f"{ratio:.3f}", f"{limit}"])
            columns = [f"{seconds * 1e6:.1f}" for seconds in (ours, *theirs)] + ["-"]
            print(
                f"{name:26} {columns[0]:>9} {columns[1]:>12} {columns[2]:>9}   {ratio:.3f} {verdict}",
                flush=True,
            )
    if options.page:
        write_section(("op", "by the faster peer", "limit"), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
