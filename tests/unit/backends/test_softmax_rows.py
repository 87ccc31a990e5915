"""Softmax kernels: what NaN and infinities do to a row, and how far a product with a reciprocal is
from a quotient."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.kernels_harness import LEVELS, Kernel, aligned, empty, normal
from tests.harness.lowering_harness import Builder, compile_graph, f32

from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.target import parse_target

ULP_MAX = 24.0  # nearly all from the sum, whose chains are up to 250 additions long


def softmax_program(height: int, width: int, level: str, op: str = "softmax") -> LoopProgram:
    """The kernel of one softmax over rows."""
    builder = Builder([f32(height, width)])
    return compile_graph(builder.finish([builder.op(op, 0, axis=1)]), parse_target(level)).programs[
        0
    ]


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("level", LEVELS)
def test_nan_spoils_its_row_alone(level: str, op: str) -> None:
    """The maximum passes over NaN, the results of the row do not; +inf and a row of -inf give NaN
    as numpy does."""
    x = normal((6, 37), 1)
    x[1, 36], x[2, 0], x[3, 5], x[4, :], x[5, 7] = np.nan, np.nan, np.inf, -np.inf, -np.inf
    result = empty((6, 37))
    Kernel(softmax_program(6, 37, level, op), parse_target(level)).run([x, result])
    with np.errstate(all="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        expected = powers / powers.sum(axis=1, keepdims=True)
        expected = np.log(expected) if op == "log_softmax" else expected
    np.testing.assert_array_equal(np.isnan(result[1:5]).all(axis=1), [True] * 4)
    np.testing.assert_allclose(result[[0, 5]], expected[[0, 5]], rtol=1e-5)


@pytest.mark.parametrize("width", [1, 10, 128, 1000])
@pytest.mark.parametrize("level", LEVELS)
def test_softmax_is_exact_to_some_units(level: str, width: int) -> None:
    """Results are within some units in the last place of what the rounded differences give, and add
    up to 1."""
    x, result = aligned(normal((20, width), 2) * 5), empty((20, width))
    Kernel(softmax_program(20, width, level), parse_target(level)).run([x, result])
    powers = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float64))
    expected = powers / powers.sum(axis=1, keepdims=True)
    units = np.abs(result - expected) / np.spacing(expected.astype(np.float32))
    assert units.max() <= ULP_MAX
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-5)
