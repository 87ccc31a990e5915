"""A transposed convolution and what it is expanded to mean the same, whatever its attributes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.ir_harness import no_constants

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.rules.reference_rules import ints
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.expand_conv_transpose import expand_conv_transpose


@st.composite
def transposed(draw: st.DrawFn) -> Graph | None:
    """A graph of one node, or None where the attributes leave no result."""
    count = draw(st.integers(1, 2))
    groups, rows = draw(st.integers(1, 3)), draw(st.sampled_from((1, 3, 8)))  # many: by taps
    own = draw(st.sampled_from((1, 2, 3, 16)))  # of many, unlike phases are apart

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    x = TensorType("f64", (draw(st.integers(1, 2)), groups * rows, *each(1, 5)))
    w = TensorType("f64", (groups * rows, own, *each(1, 5)))
    bias = [TensorType("f64", (groups * own,))] if draw(st.booleans()) else []
    builder = GraphBuilder([x, w, *bias])
    try:
        result = builder.add(
            "conv_transpose",
            tuple(range(2 + len(bias))),
            {
                "strides": each(1, 4),
                "dilations": each(1, 2),
                "pads_before": each(0, 3),
                "pads_after": each(0, 3),
                "output_padding": each(0, 2),
                "groups": groups,
            },
        )
    except OpTypeError:
        return None
    return builder.finish([result])


@given(transposed())
@settings(max_examples=200)
def test_the_expansion_means_the_same(graph: Graph | None) -> None:
    """Equal up to the order of sums; expanded unless strides and dilations are both above 1, or
    more is cut off than the kernel reaches."""
    if graph is None:
        return
    expanded = expand_conv_transpose(graph)
    node = next(node for node in graph.nodes if node.op == "conv_transpose")
    steps = zip(node.ints("strides"), node.ints("dilations"), strict=True)
    if all(1 in pair for pair in steps) and not any(
        (*node.dims("pads_before"), *node.dims("pads_after"))
    ):
        assert "conv_transpose" not in {other.op for other in expanded.nodes}
    numbers = np.random.default_rng(1)
    feeds = [numbers.standard_normal(ints(graph.types[value].shape)) for value in graph.inputs]
    (left,), (right,) = (interpret(item, feeds, no_constants) for item in (graph, expanded))
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)
