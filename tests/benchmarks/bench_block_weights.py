"""Products with weights of 4 bits in blocks beside ONNX Runtime: its exact way, and its
``accuracy_level=4``, which rounds activations to 8 bits.

In: an interpreter with onnxruntime. Out: a table of milliseconds and ratios, the least of calls in
turns; the exit code is 1 where a ratio is above its limit. Not done here: whole decoders.

Each model has several products, which are called in turn, so that weights come from memory as in a
decoder.

    taskset -c 0 python tests/benchmarks/bench_block_weights.py [--peer-python PYTHON]
    [--threads N] [--rows M] [KxN/BLOCK ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section

from ingot_build_rules.tools.view.peer import Peer

LEVELS = {0: 0.60, 4: 0.85}
"""``accuracy_level`` -> the limit of our time by that of ONNX Runtime."""
CASES = (
    "2048x2048/32",
    "2048x2048/128",
    "768x3072/32",
    "768x3072/128",
    "4096x11008/32",
    "4096x11008/128",
)
_BYTES = 32 << 20
_COUNT_MAX = 16


def model_of(depth: int, columns: int, block: int, rows: int, level: int) -> ModelProto:
    """Some products of one input, as many as have 32 MB of weights."""
    rng = np.random.default_rng(0)
    count = min(_COUNT_MAX, max(2, _BYTES // (depth * columns // 2)))
    nodes: list[NodeProto] = []
    constants: list[TensorProto] = []
    outputs: list[ValueInfoProto] = []
    for number in range(count):
        packed = rng.integers(0, 256, (columns, depth // block, block // 2)).astype(np.uint8)
        scale = rng.uniform(0.01, 0.1, columns * depth // block).astype(np.float32)
        constants += [
            numpy_helper.from_array(packed, f"b{number}"),
            numpy_helper.from_array(scale, f"s{number}"),
        ]
        nodes.append(
            helper.make_node(
                "MatMulNBits", ["x", f"b{number}", f"s{number}"], [f"y{number}"],
                domain="com.microsoft", K=depth, N=columns, bits=4, block_size=block,
                accuracy_level=level,
            )
        )  # fmt: skip
        outputs.append(helper.make_tensor_value_info(f"y{number}", 1, [rows, columns]))
    inputs = [helper.make_tensor_value_info("x", 1, [rows, depth])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def least(peers: Sequence[Peer], rounds: int) -> list[float]:
    """The least seconds of a call of each, called in turns."""
    found = [min(peer.times(3)) for peer in peers]
    for _ in range(rounds):
        found = [min(each, *peer.times(5)) for each, peer in zip(found, peers, strict=True)]
    return found


def measure(case: str, options: argparse.Namespace, work: str) -> list[float]:
    """One line of the table; its ratios."""
    size, block = case.split("/")
    depth, columns = map(int, size.split("x"))
    inputs = os.path.join(work, "x.npz")
    x = np.random.default_rng(1).standard_normal((options.rows, depth)).astype(np.float32)
    np.savez(inputs, x=x)
    peers: list[Peer] = []
    for level in LEVELS:
        path = os.path.join(work, f"{level}.onnx")
        model = model_of(depth, columns, int(block), options.rows, level)
        Path(path).write_bytes(model.SerializeToString())
        bundle = os.path.join(work, f"{level}.ingot")
        command = ["compile", path, "-o", bundle, "-q"]
        subprocess.run([sys.executable, "-m", "ingot", *command], check=True)
        peers += [
            Peer("ingot", sys.executable, bundle, inputs, options.threads),
            Peer("onnxruntime", options.peer_python, path, inputs, options.threads),
        ]
    times = least(peers, options.rounds)
    for peer in peers:
        peer.close()
    ratios = [times[0] / times[1], times[2] / times[3]]
    milliseconds = "  ".join(f"{seconds * 1e3:8.3f}" for seconds in times)
    print(f"{case:16} {milliseconds}   {ratios[0]:.3f} {ratios[1]:.3f}", flush=True)
    return ratios


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    add_page_option(parser)
    options = parser.parse_args()
    print("K x N / block, ms of ingot and ONNX Runtime, exact and accuracy_level=4; ratios")
    with tempfile.TemporaryDirectory() as work:
        ratios = {case: measure(case, options, work) for case in options.cases or CASES}
    if options.page:
        cells = ([case, *(f"{each:.2f}" for each in own)] for case, own in ratios.items())
        write_section(("K x N / block", "exact", "`accuracy_level=4`"), cells)
    kept = (all(map(float.__le__, own, LEVELS.values())) for own in ratios.values())
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
