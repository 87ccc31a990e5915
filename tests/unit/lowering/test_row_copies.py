"""Rows whose elements lie far from each other: they are copied once, for all who read them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.lowering.groups.fused import launches_of


def check(builder: Builder, outputs: Sequence[int], x: Array, kinds: Sequence[str]) -> None:
    """Kernels of these kinds, and the results of the interpreter."""
    fused = compile_graph(builder.finish(outputs)).fused
    assert [launch.group.kind for launch in launches_of(fused)] == list(kinds)
    check_graph(builder, outputs, [x])


@pytest.mark.parametrize(
    ("width", "kinds"), [(64, ("pointwise", "rows")), (63, ("rows", "pointwise"))]
)
def test_long_rows_are_copied_before_they_are_normalised(width: int, kinds: Sequence[str]) -> None:
    """Short ones are read where they lie, and so lies their result, which is copied out."""
    builder = Builder([f32(2, width, 5)])
    scale, bias = builder.constant(normal(1, width)), builder.constant(normal(2, width))
    x = builder.op("transpose", 0, permutation=(0, 2, 1))
    norm = builder.op("layer_norm", x, scale, bias, axis=2, epsilon=1e-5)
    check(builder, [builder.op("add", x, norm)], normal(0, 2, width, 5), kinds)


def test_products_of_one_transposed_value_share_its_copy() -> None:
    """One copy and three products."""
    builder = Builder([f32(24, 10)])
    x = builder.op("transpose", 0, permutation=(1, 0))
    weights = [builder.constant(normal(seed, 24, 16)) for seed in (1, 2, 3)]
    outputs = [builder.op("matmul", x, weight) for weight in weights]
    check(builder, outputs, normal(0, 24, 10), ("pointwise", "matmul", "matmul", "matmul"))
