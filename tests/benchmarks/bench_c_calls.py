"""What a call of the loader in C costs beyond `main`, what it allocates, and what memory is there
beside weights and workspace.

In: nothing, or a model or bundle of fixed sizes. Out: two lines of ``tests/unit/c_programs/calls.c``.
Not done here: limits (``tests/unit/runtime/test_c_native.py`` holds those of memory).

    taskset -c 1 python tests/benchmarks/bench_c_calls.py [MODEL] [--calls N]

Needs gcc. Without a model: one product of matrices and a softmax.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import ingot

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests" / "unit" / "c_programs" / "calls.c"
WIDTH = 64


def main() -> None:
    """Compile the program and the model, and run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--calls", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        program, bundle = Path(name) / "calls", given.model
        flags = ("-std=c11", "-O2", "-I", ROOT / "runtime" / "c")
        subprocess.run(["gcc", *flags, SOURCE, "-o", program, "-lpthread"], check=True)
        if bundle is None or bundle.suffix == ".onnx":
            model, bundle = bundle or _two_launches(), Path(name) / "m.ingot"
            ingot.compile(model).save(bundle)
        sys.exit(subprocess.run([program, bundle, str(given.calls)], check=False).returncode)


def _two_launches() -> onnx.ModelProto:
    weights = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [1, WIDTH]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


if __name__ == "__main__":
    main()
