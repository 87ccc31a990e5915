"""Gradient of the training preview: a derivative becomes nodes, or the node is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, Outcome, run_model, translate

from ingot_compiler.ir.errors import UnsupportedError

DOMAIN = "ai.onnx.preview.training"


def model(op: str, shape: list[int], inputs: str = "a b") -> ModelProto:
    """dy/da and dy/db of y = a * op(a, b) - b."""
    gradient = node("Gradient", inputs, "da db", xs=["a", "b"], y="y")
    gradient.domain = DOMAIN
    first = node(op, "a b" if op in ("Add", "Mul") else "a", "c")
    nodes = [first, node("Mul", "a c", "d"), node("Sub", "d b", "y"), gradient]
    given = [tensor("a", [3]), tensor("b", shape)]
    made = make_model(nodes, given, [tensor(name, None) for name in ("y", "da", "db")])
    made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return made


def test_derivative() -> None:
    """Every way from an operand to the result adds its part."""
    a, b = np.array([1, -2, 3], np.float32), np.array([4, 5, -6], np.float32)
    added = run_model(model("Add", [3]), [a, b], [a * (a + b) - b, 2 * a + b, a - 1])
    assert added == Outcome("agrees")
    one_way = run_model(model("Neg", [3]), [a, b], [-a * a - b, -2 * a, -np.ones_like(b)])
    assert one_way == Outcome("agrees")


@pytest.mark.parametrize(("op", "inputs"), [("Exp", "a b"), ("Add", "b a")])
def test_refused(op: str, inputs: str) -> None:
    """An op without a rule, and operands that are not the tensors named."""
    with pytest.raises(UnsupportedError, match="Gradient"):
        translate(model(op, [3], inputs), MemoryStore())


def test_broadcasting_is_refused() -> None:
    """An operand that is smaller than the result."""
    a, b = np.ones(3, np.float32), np.ones(1, np.float32)
    assert run_model(model("Add", [1]), [a, b], []).kind == "fails"
