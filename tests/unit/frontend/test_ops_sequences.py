"""Sequences and optionals whose length is known when a model is compiled, beside ONNX's reference;
``test_values`` has the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, reference, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, Outcome, run_model, translate

import ingot
from ingot_compiler.ir.errors import ModelError

AGREES = Outcome("agrees")
X: Array = np.arange(24, dtype=np.float32).reshape(4, 6)
I64 = TensorProto.INT64


def model_of(
    nodes: list[NodeProto], numbers: dict[str, int], output: int = TensorProto.FLOAT
) -> ModelProto:
    """x[4, 6] to y; scalars that are constants."""
    constants = {name: np.array(value, np.int64) for name, value in numbers.items()}
    return make_model(nodes, [tensor("x", [4, 6])], [tensor("y", None, output)], constants)


def agrees(
    nodes: list[NodeProto], numbers: dict[str, int], output: int = TensorProto.FLOAT
) -> Outcome:
    """Beside the reference."""
    model = model_of(nodes, numbers, output)
    return run_model(model, [X], list(reference(model, {"x": X}).values()))


THREE = [node("Neg", "x", "n"), node("Abs", "n", "a"), node("SequenceConstruct", "x n a", "s")]


@pytest.mark.parametrize("position", [0, 2, -3])
def test_element_of_a_sequence(position: int) -> None:
    """Counted from the front and from the back."""
    assert agrees([*THREE, node("SequenceAt", "s i", "y")], {"i": position}) == AGREES


def test_insert_and_erase() -> None:
    """At a position and at the end; the sequence before stays as it is."""
    nodes = [
        *THREE,
        node("Exp", "x", "e"),
        node("SequenceInsert", "s e i", "t"),
        node("SequenceErase", "t j", "u"),
        node("SequenceErase", "u", "v"),
        node("SequenceInsert", "v x", "w"),
        node("ConcatFromSequence", "w", "a1", axis=1),
        node("ConcatFromSequence", "s", "a2", axis=1),
        node("Concat", "a1 a2", "y", axis=0),
    ]
    assert agrees(nodes, {"i": 1, "j": -1}) == AGREES


def test_stacked_and_counted() -> None:
    """A new axis; the length as a number; an empty sequence to begin with."""
    nodes = [
        node("SequenceEmpty", "", "o"),
        node("SequenceInsert", "o x", "p"),
        node("SequenceInsert", "p x", "q"),
        node("ConcatFromSequence", "q", "z", axis=-1, new_axis=1),
        node("SequenceLength", "q", "l"),
        node("Cast", "l", "f", to=TensorProto.FLOAT),
        node("Mul", "z f", "y"),
    ]
    assert agrees(nodes, {}) == AGREES


@pytest.mark.parametrize("split", [None, 4, [1, 2, 3]])
def test_split(split: Any) -> None:
    """One element for each index, parts of a size, and sizes of each."""
    given = [] if split is None else [helper.make_node("Constant", [], ["k"], value=_tensor(split))]
    split_node = node("SplitToSequence", "x" if split is None else "x k", "s", axis=1)
    nodes = [*given, split_node, node("SequenceAt", "s i", "y")]
    assert agrees(nodes, {"i": -1}) == AGREES


def _tensor(value: Any) -> TensorProto:
    array = np.array(value, np.int64)
    return helper.make_tensor("k", I64, array.shape, array.ravel().tolist())


def test_map(tmp_path: Path) -> None:
    """A graph over each element, which sees tensors outside, from ONNX to machine code."""
    inner = helper.make_graph(
        [node("Add", "e t", "u"), node("Mul", "u n", "o")],
        "body",
        [tensor("e", None), tensor("t", None)],
        [tensor("o", None)],
    )
    nodes = [
        *THREE,
        node("ReduceSum", "x", "r", keepdims=0),
        node("SequenceMap", "s r", "m", body=inner),
        node("ConcatFromSequence", "m", "y", axis=0),
    ]
    ingot.compile(model_of(nodes, {})).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [{"x": X}])
    wanted = [(each + X.sum()) * -X for each in (X, -X, X)]
    np.testing.assert_allclose(result["y"], np.concatenate(wanted), 1e-6)


def test_loop_that_collects_a_sequence() -> None:
    """A carried sequence in a loop of a known count, as exporters write lists; scan outputs too."""
    inner = helper.make_graph(
        [
            node("Cast", "i", "f", to=TensorProto.FLOAT),
            node("Mul", "x f", "m"),
            node("SequenceInsert", "s m", "t"),
            node("Identity", "c", "d"),
            node("ReduceSum", "m", "r", keepdims=0),
        ],
        "body",
        [
            tensor("i", [], I64),
            tensor("c", [], TensorProto.BOOL),
            helper.make_tensor_sequence_value_info("s", 1, None),
        ],
        [
            tensor("d", [], TensorProto.BOOL),
            helper.make_tensor_sequence_value_info("t", 1, None),
            tensor("r", None),
        ],
    )
    nodes = [
        node("SequenceEmpty", "", "o"),
        node("Loop", "k - o", "q r", body=inner),
        node("ConcatFromSequence", "q", "z", axis=0, new_axis=1),
        node("Unsqueeze", "r ax", "w"),
        node("Add", "z w", "y"),
    ]
    model = model_of(nodes, {"k": 3})
    model.graph.initializer.append(helper.make_tensor("ax", I64, [2], [1, 2]))
    scaled = np.stack([X * number for number in range(3)])
    assert run_model(model, [X], [scaled + scaled.sum((1, 2), keepdims=True)]) == AGREES


@pytest.mark.parametrize("given", [True, False])
def test_optionals(given: bool) -> None:  # a parameter of the test
    """What an optional holds is known, so that an If on it is one of its branches."""
    kind = helper.make_tensor_type_proto(1, [4, 6])
    make = node("Optional", "x", "o") if given else node("Optional", "", "o", type=kind)
    branches = {
        "then_branch": helper.make_graph(
            [node("OptionalGetElement", "o", "g"), node("Neg", "g", "p")],
            "t",
            [],
            [tensor("p", None)],
        ),
        "else_branch": helper.make_graph([node("Exp", "x", "q")], "e", [], [tensor("q", None)]),
    }
    nodes = [make, node("OptionalHasElement", "o", "h"), node("If", "h", "y", **branches)]
    expected = -X if given else np.exp(X)
    assert run_model(model_of(nodes, {}), [X], [expected]) == AGREES


BAD: dict[str, tuple[list[NodeProto], int, str]] = {
    "behind": ([*THREE, node("SequenceAt", "s i", "y")], 3, "a position in [-3, 3), got 3"),
    "before": ([*THREE, node("SequenceAt", "s i", "y")], -4, "a position in [-3, 3), got -4"),
    "insertion": (
        [*THREE, node("SequenceInsert", "s x i", "t"), node("SequenceAt", "t i", "y")],
        4,
        "a position in [-3, 4), got 4",
    ),
    "erasure of nothing": (
        [
            node("SequenceEmpty", "", "o"),
            node("SequenceErase", "o", "p"),
            node("ConcatFromSequence", "p", "y", axis=0),
        ],
        0,
        "a sequence with elements, got an empty one",
    ),
    "no sequence": ([node("SequenceAt", "x i", "y")], 0, "expected a sequence, got f32[4, 6]"),
    "empty optional": (
        [
            node("Optional", "", "o", type=helper.make_tensor_type_proto(1, [1])),
            node("OptionalGetElement", "o", "y"),
        ],
        0,
        "an optional with an element",
    ),
    "sizes": (
        [node("SplitToSequence", "x i", "s", axis=0), node("SequenceAt", "s i", "y")],
        0,
        "positive size",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_contradicts(case: str) -> None:
    """Positions outside, and what is no sequence, are refused with the node."""
    nodes, number, text = BAD[case]
    with pytest.raises(ModelError) as caught:
        translate(model_of(nodes, {"i": number}), MemoryStore())
    assert text in str(caught.value)


def test_a_sequence_is_no_tensor() -> None:
    """A sequence where a tensor is expected is refused by name."""
    found = run_model(model_of([*THREE, node("Neg", "s", "y")], {}), [X], [])
    assert (found.kind, "in the place of a tensor" in found.detail) == ("unsupported", True)
