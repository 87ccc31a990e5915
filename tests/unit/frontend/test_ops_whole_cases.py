"""The node cases of ops that few models have, all of them: the interpreter gives what ONNX expects,
and sizes that contradict an op are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto
from tests.conformance.cases import collect
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, run_model, translate

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import ModelError

MODULES = ("bitcast", "deformconv", "det", "melweightmatrix", "tfidfvectorizer")
PATTERNS = ("bitcast", "deform_conv", "det_", "melweight", "tfidf")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_node_case(pattern: str) -> None:
    """No case is refused and none differs."""
    cases = [case for name, case in collect(("node",), MODULES).items() if pattern in name]
    assert cases
    for case in cases:
        for inputs, expected in case.data_sets():
            found = run_model(case.model(), inputs, expected, case.case.rtol, case.case.atol)
            assert found.kind == "agrees", (case.name, found.detail)


def test_singular_and_large_matrices() -> None:
    """A column of zeros gives 0, and rows are exchanged where a pivot is 0."""
    x = np.zeros((3, 4, 4))
    x[0] = np.eye(4)[[1, 2, 0, 3]] * 3
    x[1, :, 1:] = np.random.default_rng(0).normal(size=(4, 3))
    x[2] = np.random.default_rng(1).normal(size=(4, 4))
    double = TensorProto.DOUBLE
    model = make_model(
        [node("Det", "x", "y")], [tensor("x", x.shape, double)], [tensor("y", None, double)]
    )
    assert run_model(model, [x], [np.linalg.det(x)]).kind == "agrees"


def test_determinants_of_open_size(tmp_path: Path) -> None:
    """Matrices of no, one and many rows, permutations, and one without an inverse; a large one of known
    size. Sizes that differ are refused in the call."""
    rng, double = np.random.default_rng(2), TensorProto.DOUBLE
    given = [rng.normal(size=(2, size, size)) for size in (0, 1, 7)]
    given += [np.eye(6)[None, [3, 2, 5, 1, 0, 4]], np.triu(np.ones((1, 5, 5)), 1)]
    model = make_model(
        [node("Det", "x", "y")], [tensor("x", ["b", "n", "m"], double)], [tensor("y", None, double)]
    )
    check_model(model, [{"x": x} for x in given], tmp_path, floor=1e-12)
    with pytest.raises(ingot_runtime.InputError, match="square matrices"):
        ingot_runtime.load(ingot.compile(model).to_bytes()).run({"x": np.zeros((1, 2, 3))})
    large = rng.normal(size=(20, 20))
    model.graph.input[0].CopyFrom(tensor("x", large.shape, double))
    assert run_model(model, [large], [np.linalg.det(large)]).kind == "agrees"


BAD: dict[str, tuple[NodeProto, dict[str, list[int]], str]] = {
    "not square": (node("Det", "x", "y"), {"x": [2, 3]}, "square matrices"),
    "offsets": (
        node("DeformConv", "x w o", "y"),
        {"x": [1, 2, 5, 5], "w": [3, 2, 3, 3], "o": [1, 17, 3, 3]},
        "18 offsets",
    ),
    "channels": (
        node("DeformConv", "x w o", "y"),
        {"x": [1, 4, 5, 5], "w": [3, 2, 3, 3], "o": [1, 18, 3, 3]},
        "2 channels, got 4",
    ),
    "widths": (node("BitCast", "x", "y", to=TensorProto.INT64), {"x": [3]}, "a type of 32 bits"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_contradicts(case: str) -> None:
    """Each contradiction is refused with what was expected and got."""
    made, shapes, text = BAD[case]
    inputs = [tensor(name, shape) for name, shape in shapes.items()]
    model = make_model([made], inputs, [tensor("y", None)])
    model.opset_import[0].version = 26
    with pytest.raises(ModelError) as caught:
        translate(model, MemoryStore())
    assert text in str(caught.value)
