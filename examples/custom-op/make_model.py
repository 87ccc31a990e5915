"""Writes a model with ops of its own domain: ``python make_model.py [FOLDER]``."""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

DOMAIN = "acme.signal"


def model() -> onnx.ModelProto:
    """x[rows, 6] through the two ops that the files beside this one define."""
    nodes = [
        helper.make_node("SoftThreshold", ["x"], ["t"], "/shrink", domain=DOMAIN, limit=0.5),
        helper.make_node("ScaledSwish", ["t"], ["y"], "/gate", domain=DOMAIN, axis=-1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 6])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    graph = helper.make_graph(nodes, "signal", [x], [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def main() -> None:
    """Write the model and an input."""
    parser = argparse.ArgumentParser(description="write a model with ops of its own domain")
    parser.add_argument("folder", nargs="?", default="dist/custom-op")
    folder = Path(parser.parse_args().folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "signal.onnx").write_bytes(model().SerializeToString())
    np.savez(folder / "x.npz", x=np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6))
    print(f"{folder}/signal.onnx, {folder}/x.npz")


if __name__ == "__main__":
    main()
