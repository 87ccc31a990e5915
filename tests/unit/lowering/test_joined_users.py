"""Values that several ops read, all of which one joins: one kernel computes all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.lowering.groups.fused import launches_of

SHAPE = (1, 16, 6, 7)


def conv(builder: Builder, x: int = 0) -> int:
    """A convolution that keeps the size."""
    return builder.op(
        "conv", x, builder.constant(normal(1, 16, 16, 3, 3)), strides=(1, 1), dilations=(1, 1),
        pads_before=(1, 1), pads_after=(1, 1), groups=1,
    )  # fmt: skip


def slope(builder: Builder, x: int) -> int:
    """PRelu with a slope of each channel."""
    slopes = builder.constant(normal(2, 16, 1, 1))
    less = builder.op("less", x, builder.literal(0.0))
    return builder.op("select", less, builder.op("mul", x, slopes), x)


def hard_swish(builder: Builder, x: int) -> int:
    """Several ops between the value and what joins them."""
    moved = builder.op("add", x, builder.literal(3.0))
    limited = builder.op(
        "min", builder.op("max", moved, builder.literal(0.0)), builder.literal(6.0)
    )
    return builder.op("mul", x, limited)


def convolutions(builder: Builder, outputs: list[int]) -> int:
    """How many kernels hold a convolution and nothing else."""
    launches = launches_of(compile_graph(builder.finish(outputs)).fused)
    groups = [launch.group for launch in launches]
    return sum([node.op for node in group.nodes] == ["conv"] for group in groups)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("activation", [slope, hard_swish])
def test_what_is_joined_is_in_one_kernel(activation: Callable[[Builder, int], int]) -> None:
    """Behind a convolution, and before the next one."""
    builder = Builder([f32(*SHAPE)])
    result = conv(builder, activation(builder, conv(builder)))
    assert convolutions(builder, [result]) == 1  # the last one
    check_graph(builder, [result], [normal(3, *SHAPE)], 1e-5, RUNNABLE)


def test_the_joined_value_may_be_added_to_another() -> None:
    """Which another convolution makes: one of the two is stored."""
    builder = Builder([f32(*SHAPE)])
    total = builder.op("add", slope(builder, conv(builder)), conv(builder))
    assert convolutions(builder, [total]) <= 1
    check_graph(builder, [total], [normal(3, *SHAPE)], 1e-5, RUNNABLE)


@pytest.mark.parametrize(
    "reader", ["the model", "another op", "nobody joins them", "a value of a run beside it"]
)
def test_what_somebody_else_reads_is_computed_once(reader: str) -> None:
    """Else the sums would be made again for each reader."""
    builder = Builder([f32(*SHAPE), f32(*SHAPE)])
    value = conv(builder)
    outputs = [slope(builder, value)]
    if reader == "the model":
        outputs.append(value)
    elif reader == "another op":
        outputs.append(builder.op("reduce", value, function="sum", axes=(1,), keepdims=False))
    elif reader == "nobody joins them":
        outputs = [builder.op("relu", value), builder.op("neg", value)]
    else:
        less = builder.op("less", value, builder.literal(0.0))
        outputs = [builder.op("select", less, builder.op("mul", value, 1), value)]
    launches = launches_of(compile_graph(builder.finish(outputs)).fused)
    assert sum(node.op == "conv" for launch in launches for node in launch.group.nodes) == 1
    inputs = [normal(3, *SHAPE), normal(4, *SHAPE)]
    check_graph(builder, outputs, inputs, 1e-5, RUNNABLE)
