"""Convolutions of any size by Winograd's algorithm are near to those in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal, run_compiled
from tests.unit.kernels.test_winograd import WIDE

from ingot_compiler.ir.precision import FAST
from ingot_compiler.kernels.products.tuned import WINOGRAD

ERROR_MAX = 3e-5  # of the largest result, by the root mean square of all


def in_f64(x: Array, weights: Array, pads: tuple[int, ...], groups: int) -> Array:
    """The convolution in float64, rounded once."""
    above, before, below, behind = pads
    padded = np.pad(x, ((0, 0), (0, 0), (above, below), (before, behind))).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], (2, 3))
    parts = zip(
        np.split(windows, groups, axis=1),
        np.split(weights.astype(np.float64), groups),
        strict=True,
    )
    return np.concatenate([np.einsum("ncyxab,ocab->noyx", *part) for part in parts], axis=1).astype(
        np.float32
    )


@pytest.mark.broad
@given(st.data())
@settings(max_examples=30)
def test_any_convolution(data: st.DataObject) -> None:
    """Images, pads, taps, groups and columns of any number, on each level that has the algorithm."""
    groups = data.draw(st.sampled_from((1, 1, 2, 3)))
    channels = 16 * data.draw(st.sampled_from((1, 2, 4, 8)))
    columns = 16 * data.draw(st.integers(1, 3)) if groups > 1 else data.draw(st.integers(1, 48))
    taps = data.draw(st.sampled_from(((3, 3), (5, 5), (7, 7), (4, 6))))
    size = tuple(data.draw(st.integers(tap, 15)) for tap in taps)
    pads = tuple(data.draw(st.integers(0, tap - 1)) for tap in (*taps, *taps))
    x = normal(1, data.draw(st.integers(1, 2)), groups * channels, *size)
    weights = normal(2, groups * columns, channels, *taps)
    builder = Builder([f32(*x.shape)])
    result = builder.op(
        "conv", 0, builder.constant(weights), strides=(1, 1), pads_before=pads[:2],
        pads_after=pads[2:], dilations=(1, 1), groups=groups,
    )  # fmt: skip
    graph = builder.finish([result])
    target, method = data.draw(st.sampled_from(WIDE)), data.draw(st.sampled_from(WINOGRAD))
    compiled = compile_graph(graph, target, precision=FAST, method=method)
    (found,) = run_compiled(compiled, graph, [x], builder.read)
    exact = in_f64(x, weights, pads, groups)
    assert np.abs(found - exact).max() <= ERROR_MAX * np.sqrt(np.mean(exact**2))
