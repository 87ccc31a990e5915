"""Activations of constants are folded, with the bits that every machine computes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.passes.test_passes_constant_expression import Weights, expression_of

from ingot_compiler.ir.op import Array
from ingot_compiler.lowering.constants.constant_expression import constant_values
from ingot_compiler.lowering.constants.evaluate_constant import evaluate
from ingot_compiler.oracles.interpret import interpret


@pytest.mark.parametrize("op", ["sigmoid", "silu"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_activations_of_constants(op: str, dtype: str) -> None:
    """As the interpreter computes them in f64."""
    weights = Weights()
    x = weights.constant("x", dtype, 5000)
    value = weights.add(op, (x,))
    wide: type[np.float32 | np.float64] = np.float32 if dtype == "f32" else np.float64
    weights.arrays["x"] = np.random.default_rng(0).uniform(-9, 9, 5000).astype(wide)
    graph = weights.builder.finish((value,))
    assert value in constant_values(graph)
    found: Array = np.frombuffer(evaluate(expression_of(graph, value), weights.read), wide)
    (expected,) = interpret(graph, [], weights.read)
    precision = float(np.finfo(wide).eps)
    np.testing.assert_allclose(found, expected, 4 * precision, 8 * precision)
