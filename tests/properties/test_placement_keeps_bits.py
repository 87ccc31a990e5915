"""Wherever the nodes of a graph run, the bits are those of the host alone: kernels, pools and
copies per device."""

import dataclasses
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import (
    HOST_ALONE,
    Builder,
    Compiled,
    compile_graph,
    run_compiled,
)
from tests.properties.test_passes_keep_meaning import graphs

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Copy, all_steps, launches_of
from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice

THREE = (
    *HOST_ALONE,
    DeclaredDevice("acc", VirtualDevice("null", 0)),
    DeclaredDevice("other", VirtualDevice("null", 1)),
)
X = np.random.default_rng(3).standard_normal((2, 8, 6, 6)).astype(np.float32)


def copies_of(compiled: Compiled) -> int:
    """How many buffers cross."""
    steps = all_steps(compiled.fused.steps)
    return sum(isinstance(step, Copy) and step.part != "end" for step in steps)


def marked(graph: Graph, marks: list[str]) -> Graph:
    """The same graph, its nodes marked in order; "" follows its operands."""
    nodes = tuple(
        dataclasses.replace(node, mark=mark if node.op not in ("if", "loop", "read_dim") else "")
        for node, mark in zip(graph.nodes, itertools.cycle(marks), strict=False)
    )
    return dataclasses.replace(graph, nodes=nodes)


@settings(max_examples=60)
@given(graphs(), st.lists(st.sampled_from(("", "host", "acc", "other")), min_size=1, max_size=14))
def test_random_placements(graph: Graph, marks: list[str]) -> None:
    """Random graphs of elementwise and movement ops, random marks, three devices."""
    inputs = [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3),
    ]
    alone = compile_graph(marked(graph, ["host"]), passes=False)
    expected = run_compiled(alone, graph, inputs, _no_constants)
    placed = compile_graph(marked(graph, marks), passes=False, devices=THREE)
    actual = run_compiled(placed, graph, inputs, _no_constants)
    for want, have in zip(expected, actual, strict=True):
        assert want.tobytes() == have.tobytes()


def _no_constants(digest: str) -> memoryview:
    raise AssertionError(digest)


def blocks(builder: Builder, marks: tuple[str, ...]) -> int:
    """Six blocks of a network: convolutions, a residual sum, pooling, a matrix product, softmax."""
    numbers = np.random.default_rng(4)

    def weights(*shape: int) -> int:
        return builder.constant(numbers.standard_normal(shape).astype(np.float32))

    def conv(x: int, w: int, mark: str) -> int:
        attributes: dict[str, Attribute] = {
            "groups": 1, "strides": (1, 1), "dilations": (1, 1), "pads_before": (1, 1), "pads_after": (1, 1),
        }  # fmt: skip
        return builder.add("conv", (x, w), attributes, (), mark)

    x = 0
    x = builder.add("relu", (conv(x, weights(8, 8, 3, 3), marks[0]),), {}, (), marks[0])
    y = builder.add("relu", (conv(x, weights(8, 8, 3, 3), marks[1]),), {}, (), marks[1])
    x = builder.add("add", (x, y), {}, (), marks[2])
    x = builder.add(
        "reduce", (x,), {"function": "mean", "axes": (2, 3), "keepdims": False}, (), marks[3]
    )
    x = builder.add("matmul", (x, weights(8, 16)), {}, (), marks[4])
    return builder.add("softmax", (x,), {"axis": 1}, (), marks[5])


def _outputs(marks: tuple[str, ...]) -> tuple[list[Array], Compiled]:
    builder = Builder([TensorType("f32", X.shape)])
    graph = builder.finish([blocks(builder, marks)])
    compiled = compile_graph(graph, devices=THREE)
    return run_compiled(compiled, graph, [X], builder.read), compiled


def test_a_network_on_three_devices() -> None:
    """Some placements of six blocks; each weight lies where it is read, and a value crosses once
    per device that needs it."""
    (expected,), alone = _outputs(("host",) * 6)
    assert copies_of(alone) == 0
    for marks, copies in (
        (("acc",) * 6, 2),
        (("host", "acc", "host", "acc", "host", "acc"), 6),
        (("acc", "other", "acc", "other", "acc", "other"), 7),
        (("host", "host", "host", "acc", "acc", "acc"), 2),
    ):
        (actual,), compiled = _outputs(marks)
        assert actual.tobytes() == expected.tobytes(), marks
        assert copies_of(compiled) == copies, marks
        launches = launches_of(compiled.fused)
        devices = {
            compiled.fused.buffers[buffer].device
            for launch in launches
            for buffer in launch.buffers
        }
        assert len(devices) == len(set(marks))
