"""Everything of a model that Ingot does not support is in one error, whichever stage finds it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import normal

from ingot_compiler.ir.errors import UnsupportedError

WORDS = numpy_helper.from_array(np.array([1j, 2j], np.complex64), "small")


def branch(name: str) -> GraphProto:
    """A branch with a node that Ingot does not translate."""
    inner = node("Cast", "x", f"{name}_c", name=name, to=TensorProto.COMPLEX64)
    back = node("Cast", f"{name}_c", f"{name}_b", to=TensorProto.FLOAT)
    total = node("Add", f"x {name}_b", f"{name}_d")
    return helper.make_graph([inner, back, total], name, [], [tensor(f"{name}_d", ["n", 4])])


def listed(nodes: list[NodeProto], constants: dict[str, Array] | None = None) -> list[str]:
    """The names in the one error, in order."""
    inputs = [
        tensor("s", [2], TensorProto.COMPLEX64),
        tensor("x", ["n", 4]),
        tensor("sh", ["r"], 7),
        tensor("c", [], 9),
    ]
    read = {name for each in nodes for name in each.input}
    ends = [name for each in nodes for name in each.output if name not in read]
    model = make_model(nodes, inputs, [tensor(name, None) for name in ends], constants)
    if any("small" in each.input for each in model.graph.node):
        model.graph.initializer.append(WORDS)
    with pytest.raises(UnsupportedError) as caught:
        translate(model, MemoryStore())
    lines = str(caught.value.why).splitlines()[1:]
    assert caught.value.what.startswith(f"the model uses {len(lines)} thing")
    return [line.split("'")[1] for line in lines]


def test_ops_types_and_ranks() -> None:
    """An input and an initializer of types that Ingot has not, two unknown ops, casts, ranks that
    are known at run time; what reads a refused result is not listed, what reads a sound one is."""
    nodes = [
        node("NoSuchOp", "x", "a", name="unknown"), node("Relu", "a", "b", name="after_unknown"),
        node("ImageDecoder", "s", "t", name="picture"), node("Identity", "small", "f", name="of_small"),
        node("Cast", "x", "g", name="cast", to=TensorProto.COMPLEX64),
        node("Reshape", "x sh", "h", name="rank"), node("Reshape", "x two", "i", name="sound"),
        node("Reshape", "i sh", "y", name="rank_of_sound"),
    ]  # fmt: skip
    assert listed(nodes, {"two": np.array([2, -1])}) == [
        "s", "unknown", "picture", "small", "cast", "rank", "rank_of_sound",
    ]  # fmt: skip


def test_branches() -> None:
    """What a branch holds is listed beside what import refuses outside of it."""
    nodes = [
        node("NoSuchOp", "x", "a", name="unknown"),
        node("If", "c", "y", name="choice", then_branch=branch("then"), else_branch=branch("else")),
    ]
    assert listed(nodes) == ["unknown", "then", "else"]


def test_wrong_nodes_do_not_hide_others() -> None:
    """A node whose operands contradict it is an error of its own, once the rest is supported; so is
    a large constant that a shape is read from."""
    nodes = [
        node("NoSuchOp", "x", "a", name="unknown"), node("MatMul", "x w", "b", name="contradicts"),
        node("Reshape", "x large", "d", name="of_large"), node("Reshape", "x sh", "y", name="rank"),
    ]  # fmt: skip
    constants = {"w": normal(0, 9, 9), "large": np.ones(9000, np.int64)}
    assert listed(nodes, constants) == ["unknown", "rank"]


def test_absent_operands_are_no_absent_results() -> None:
    """What a refused node leaves without an operand says nothing of nodes without a result."""
    sound = node("SkipSimplifiedLayerNormalization", "x x scale", "normed", name="sound")
    sound.output.extend(["", "", "total"])
    sound.domain = "com.microsoft"
    nodes = [
        sound, node("Cast", "x", "g", name="cast", to=TensorProto.COMPLEX64),
        node("Clip", "g - top", "h", name="of_refused"), node("Neg", "normed", "y"),
        node("Cast", "x", "other", name="cast_too", to=TensorProto.COMPLEX128),
    ]  # fmt: skip
    constants = {"top": np.array(1, np.float32), "scale": normal(0, 4)}
    ends = [tensor(name, None) for name in ("h", "y", "total", "other")]
    model = make_model(nodes, [tensor("x", ["n", 4])], ends, constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedError, match="the model uses 2 things"):
        translate(model, MemoryStore())
