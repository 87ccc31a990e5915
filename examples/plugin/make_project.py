"""Write the project: both plug-ins, ``ingot.toml``, and a model of two residual blocks, whose sums
end in a relu.

In: a folder (default ``dist/plugin``). Out: the project in it. Not done here: compiling it (``ingot
build``).
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 16


def blocks() -> onnx.ModelProto:
    """``x = relu(x + x @ w)``, twice, then a sum with a row, which is no sum of equal shapes."""
    random = np.random.default_rng(7)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for block in range(2):
        weight = random.normal(0, 0.2, (SIZE, SIZE)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{block}"))
        product, total, result = (f"{name}{block}" for name in ("product", "sum", "relu"))
        nodes += [
            helper.make_node(
                "MatMul", [value, f"w{block}"], [product], name=f"/block{block}/matmul"
            ),
            helper.make_node("Add", [value, product], [total], name=f"/block{block}/add"),
            helper.make_node("Relu", [total], [result], name=f"/block{block}/relu"),
        ]
        value = result
    weights.append(numpy_helper.from_array(np.ones(SIZE, np.float32), "row"))
    nodes += [helper.make_node("Add", [value, "row"], ["y"], name="/head/add")]
    shape: list[str | int | None] = ["batch", SIZE]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph(nodes, "blocks", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_project(folder: Path) -> None:
    """Copy what lies here, and write the model beside it."""
    left_out = shutil.ignore_patterns("make_project.py", "__pycache__")
    shutil.copytree(Path(__file__).parent, folder, ignore=left_out, dirs_exist_ok=True)
    (folder / "blocks.onnx").write_bytes(blocks().SerializeToString())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="write the project of the plug-in example")
    parser.add_argument("folder", nargs="?", default="dist/plugin")
    write_project(Path(parser.parse_args().folder))
