"""Write two models for docs/shipping.md: ``old.onnx``, and ``new.onnx``, whose last layer was trained
further.

In: a folder. Out: files in it. Not done here: training.
"""

import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WIDTH = 512


def model(last: "np.ndarray") -> bytes:
    """Two layers; `last`: the weights of the second one."""
    first = np.random.RandomState(0).standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "first"], ["h"], name="first"),
            helper.make_node("Tanh", ["h"], ["t"], name="tanh"),
            helper.make_node("MatMul", ["t", "last"], ["y"], name="last"),
        ],
        "shipped",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        [numpy_helper.from_array(first, "first"), numpy_helper.from_array(last, "last")],
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(whole.SerializeToString())


def main(folder: str) -> None:
    """Write both."""
    os.makedirs(folder, exist_ok=True)
    for seed, name in enumerate(("old", "new"), 1):
        last = np.random.RandomState(seed).standard_normal((WIDTH, 8)).astype(np.float32)
        with open(os.path.join(folder, f"{name}.onnx"), "wb") as file:
            file.write(model(last))


if __name__ == "__main__":
    main(sys.argv[1])
