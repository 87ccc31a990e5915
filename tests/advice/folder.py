"""A folder in which commands go wrong: models, bundles, texts of stages, projects, caches.

In: a path. Out: files. Not done here: the commands (``cases``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.unit.cli.test_compile_program import write_npz

from ingot_build_rules.tools.cli.main import main

TARGET = "x86-64-v3"
PROJECT = """
[model.net]
source = "net.onnx"

[bundle.b]
model = "net"
targets = ["x86-64-v3"]
"""
_OUTSIDE = """
[model.two]
source = "../two.onnx"

[bundle.b]
model = "two"
targets = ["x86-64-v3"]
output = "../../b.ingot"
"""
_TUNING = 'version = 2\ntarget = "{}"\nprocessor = ""\n\n[methods]\n'
_TEXTS = {
    "twice.ingot-text": "def @Twice(%x: f32[2, 3]) -> f32[2, 3] { add(%x, %x) }\n",
    "placed.ingot-text": """device "host" id 0 type "host" default

def @Twice(%x: f32[2, 3]) -> f32[2, 3] { add(%x, on_device(%x, "host")) }
""",
    "constants.txt": """graph(%0: f32[2, 3]) {
  %1 = constant() {dtype="f32", shape=[2, 3], weight="0"} : f32[2, 3]
  %2 = add(%0, %1) : f32[2, 3]
  return %2
}
""",
    "foreign.tune": _TUNING.format("x86-64-v2"),
    "nodes.tune": _TUNING.format(TARGET) + 'nobody = "conv"\n',
}
_RELU = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
_ADD = [helper.make_node("Add", ["x", "z"], ["y"], name="add")]

Dims = Sequence[int | str] | None


def make_folder(folder: Path) -> None:
    """Write all files; the current folder has to be this one."""
    for name, text in _TEXTS.items():
        (folder / name).write_text(text)
    _save_models()
    _save_arrays()
    for words in (
        "one",
        "two",
        "picky",
        "one -o bare.ingot --strip",
        "one -o both.ingot --target x86-64-v2",
        "one -o placed.ingot --device acc=cpu:1 --place relu=acc",
        "one -o null.ingot --device acc=null --place relu=acc",
    ):
        model, *more = words.split()
        output = [] if "-o" in more else ["-o", f"{model}.ingot"]
        assert main(["compile", f"{model}.onnx", "--target", TARGET, "-q", *output, *more]) == 0
    foreign = ["compile", "one.onnx", "--target", "aarch64", "-q", "-o", "foreign.ingot"]
    assert main(foreign) == 0
    for stage in ("graph", "placed", "loops"):
        assert main(["compile", "one.onnx", "--to", stage, "-o", f"{stage}.txt", "-q"]) == 0
    _make_folders(folder)


def _make_folders(folder: Path) -> None:
    for name in ("empty", "out", "project", "outside", "graphs", "shared"):
        (folder / name).mkdir()
    (folder / "shared").chmod(0o777)
    (folder / "linked").symlink_to("shared")
    (folder / "project" / "ingot.toml").write_text(PROJECT)
    (folder / "outside" / "ingot.toml").write_text(_OUTSIDE)
    for name in ("project/net", "graphs/one", "graphs/two"):
        (folder / f"{name}.onnx").write_bytes(Path(f"{os.path.basename(name)}.onnx").read_bytes())


def _save_models() -> None:
    one: dict[str, Dims] = {"x": [2, 3]}
    _save(
        "two",
        [
            helper.make_node("Add", ["a", "b"], ["s"], name="add"),
            helper.make_node("ReduceSum", ["c"], ["t"], keepdims=0, name="sum"),
        ],
        {"a": ["n", 3], "b": ["n", 3], "c": ["m", 2, 2, "k"]},
        {"s": ["n", 3], "t": []},
    )
    _save("one", _RELU, one, {"y": [2, 3]})
    twice = helper.make_node("Twice", ["x"], ["y"], name="twice", domain="mine")
    _save("mine", [twice], one, {"y": [2, 3]})
    _save("unset", _RELU, {"x": None}, {"y": None})
    _save("scalar", _RELU, {"x": []}, {"y": []})
    _save("contrary", _ADD, {"x": [2, 3], "z": [2, 4]}, {"y": [2, 4]})
    _save("picky", _ADD, {"x": ["n"], "z": ["m"]}, {"y": None})
    branches = [
        helper.make_graph([helper.make_node(op, ["a"], ["r"])], op, [], _infos({"r": ["n", 3]}))
        for op in ("Neg", "Abs")
    ]
    cast = helper.make_node("Cast", ["c"], ["b"], name="cast", to=TensorProto.BOOL)
    choose = helper.make_node("If", ["b"], ["y"], name="choose")
    for name, branch in zip(("then_branch", "else_branch"), branches, strict=True):
        choose.attribute.append(helper.make_attribute(name, branch))
    _save("net", [cast, choose], {"a": ["n", 3], "c": []}, {"y": ["n", 3]})
    weights = numpy_helper.from_array(np.ones((32, 32), np.float32), "w")
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")
    _save("matrix", [product], {"x": [32, 32]}, {"y": [32, 32]}, [weights])


def _save_arrays() -> None:
    ones = np.ones((4, 3), np.float32)
    np.savez("one.npz", x=ones[:2])
    np.savez("two.npz", a=ones, b=ones, c=np.ones((4, 2, 2, 4), np.float32))
    write_npz(Path("constants.npz"), {"0": ones[:2]})
    np.savez("matrix.npz", x=np.ones((32, 32), np.float32))


def _save(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Dims],
    outputs: Mapping[str, Dims],
    weights: Sequence[onnx.TensorProto] = (),
) -> None:
    graph = helper.make_graph(nodes, name, _infos(inputs), _infos(outputs), weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    Path(f"{name}.onnx").write_bytes(model.SerializeToString())


def _infos(types: Mapping[str, Dims]) -> list[onnx.ValueInfoProto]:
    floats = TensorProto.FLOAT
    return [helper.make_tensor_value_info(name, floats, dims) for name, dims in types.items()]
