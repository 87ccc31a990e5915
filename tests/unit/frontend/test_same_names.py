"""Dimensions that a file calls by one name: one size where an op compares them, else independent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, no_external
from tests.stage_checks import check_imported

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import TypedModel, infer_types
from ingot_compiler.ir.sizes.given_shape import read_shape

N = ["N", "M"]


def two_inputs(nodes: list[NodeProto], *outputs: str) -> ModelProto:
    """A model of x and z, both float[N, M]."""
    ends = [tensor(name, None) for name in outputs]
    return make_model(nodes, [tensor("x", N), tensor("z", N)], ends)


def typed(model: ModelProto, **shapes: str) -> TypedModel:
    """Import and infer types."""
    given = [{name: read_shape(text) for name, text in shapes.items()}] if shapes else []
    store = MemoryStore()
    data = model.SerializeToString()
    imported, _ = import_model(data, no_external, store.write, given, [])
    check_imported(imported)
    return infer_types(imported, store.read)


def inputs(model: ModelProto) -> list[str]:
    """The types of the graph's inputs."""
    graph = typed(model).graph
    return [str(graph.types[value]) for value in graph.inputs]


ONE_SIZE, APART = ["f32[s0, s1]", "f32[s0, s1]"], ["f32[s0, s1]", "f32[s2, s3]"]


@pytest.mark.parametrize(("nodes", "expected"), [
    ([node("Add", "x z", "y")], ONE_SIZE),
    ([node("Shape", "z", "s"), node("Reshape", "x s", "y")], ONE_SIZE),
    ([node("Shape", "z", "s"), node("Expand", "x s", "y")], ONE_SIZE),
    ([node("Concat", "x z", "y", axis=0)], ["f32[s0, s1]", "f32[s2, s1]"]),
    ([node("Transpose", "z", "t", perm=[1, 0]), node("MatMul", "x t", "y")],
     ["f32[s0, s1]", "f32[s2, s1]"]),
    ([node("Relu", "x", "y"), node("Abs", "z", "w")], APART),
    ([node("Shape", "z", "s"), node("Shape", "x", "r"), node("Equal", "s r", "c"),
      node("Where", "c s r", "w"), node("Cast", "w", "y", to=1)], ONE_SIZE),
    ([node("Shape", "z", "s"), node("Shape", "x", "r"), node("Max", "s r", "m"),
      node("Expand", "x m", "y")], ONE_SIZE),
])  # fmt: skip
def test_what_is_one_size(nodes: list[NodeProto], expected: list[str]) -> None:
    """Sizes that an op compares, and no others; the graph is the one of a file with one symbol."""
    assert inputs(two_inputs(nodes, nodes[-1].output[0])) == expected


def test_caches_of_layers_are_one_size() -> None:
    """Sums of sizes are compared term by term: a mask is added to the scores of every layer."""
    nodes = [node("Concat", "x z", "y", axis=0), node("Concat", "x u", "v", axis=0),
             node("Add", "y v", "w")]  # fmt: skip
    ends = [tensor("w", None)]
    model = make_model(nodes, [tensor(name, ["N", 4]) for name in "xzu"], ends)
    assert inputs(model) == ["f32[s0, 4]", "f32[s1, 4]", "f32[s1, 4]"]


def test_a_name_twice_in_one_input(tmp_path: Path) -> None:
    """It runs with different sizes, in every way of running."""
    model = make_model(
        [node("Exp", "x", "y")], [tensor("x", ["N", "N"])], [tensor("y", ["N", "N"])]
    )
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    feeds = [{"x": np.ones(shape, np.float32)} for shape in ((2, 3), (4, 4))]
    for feed, got in zip(feeds, run_all_ways(tmp_path / "m.ingot", feeds), strict=True):
        np.testing.assert_allclose(got["y"], np.exp(feed["x"]), rtol=1e-6)
    assert ingot_runtime.load(tmp_path / "m.ingot").inputs[0].shape == ("N", "x.1")


@pytest.mark.parametrize(("nodes", "options", "runs"), [
    ([node("Relu", "x", "y"), node("Abs", "z", "w")], [], True),
    ([node("Relu", "x", "y"), node("Abs", "z", "w")], ["--strict-dims"], False),
    ([node("Add", "x z", "y"), node("Abs", "z", "w")], [], False),
])  # fmt: skip
def test_calls_in_which_sizes_differ(
    tmp_path: Path, nodes: list[NodeProto], options: list[str], runs: bool
) -> None:
    """They run, unless an op compares the sizes or the user asks for one size: then the input is
    named."""
    path, bundle = tmp_path / "m.onnx", tmp_path / "m.ingot"
    path.write_bytes(two_inputs(nodes, "y", "w").SerializeToString())
    assert main(["compile", str(path), "-o", str(bundle), "-q", *options]) == 0
    session = ingot_runtime.load(bundle)
    feed = {"x": np.ones((2, 3), np.float32), "z": np.ones((4, 3), np.float32)}
    if runs:
        assert [array.shape for array in session.run(feed).values()] == [(2, 3), (4, 3)]
    else:
        with pytest.raises(ingot_runtime.InputError, match=r"axis 0(?s:.*)N is 2 in input 'x'"):
            session.run(feed)


def test_a_profile_binds_names() -> None:
    """All dimensions of a name get the size, and the version is for calls in which they all have
    it."""
    apart = two_inputs([node("Relu", "x", "y"), node("Abs", "z", "w")], "y", "w")
    together = two_inputs([node("Add", "x z", "y")], "y")
    found = [
        [str(item) for item in typed(model, x="2x?").profiles[0]] for model in (apart, together)
    ]
    assert found == [["s0 = 2", "s2 = 2"], ["s0 = 2"]]
