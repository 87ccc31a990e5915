"""The node cases of ops that few models have, all of them: the interpreter gives what ONNX expects,
and sizes that contradict an op are refused."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto
from tests.conformance.cases import collect
from tests.unit.end_to_end_harness import make_model, node, tensor
from tests.unit.frontend_harness import MemoryStore, run_model, translate

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
