"""What a back end does to a graph before fusion: ops that its device has no kernel for become ops
that it has, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from tests.harness.lowering_harness import BEST, compile_fused, normal, run_compiled

from ingot_compiler.backends.host.hooks import device_rules
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.errors import InternalError, UnsupportedError
from ingot_compiler.ir.graph import Graph, Node, OptimizedGraph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.anchors import ANCHORS
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.fusion.device_rules import DeviceRules
from ingot_compiler.lowering.fusion.legalise import Expansion
from ingot_compiler.lowering.groups.fused import FusedGraph, groups_of
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.placement.place import place
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice

DEVICES = (
    DeclaredDevice("host", VirtualDevice(HOST_TYPE, 0)),
    DeclaredDevice("acc", VirtualDevice("null", 0)),
)
SHAPE = (3, 5)


def softmax_as_loops(builder: GraphBuilder, node: Node) -> Sequence[int]:
    """Softmax along one axis by reductions and elementwise ops, for a device without row
    kernels."""
    (x,), axis = builder.inputs, node.integer("axis")

    def along(function: str, value: int) -> int:
        return builder.add(
            "reduce", (value,), {"function": function, "axes": (axis,), "keepdims": True}
        )

    raised = builder.add("exp", (builder.add("sub", (x, along("max", x))),))
    return (builder.add("div", (raised, along("sum", raised))),)


def rules_without_rows(legalise: Mapping[str, Expansion]) -> DeviceRules:
    """A test back end: the host's kernels but that for softmax."""
    return DeviceRules(
        BEST, {op: anchor for op, anchor in ANCHORS.items() if op != "softmax"}, legalise
    )


def two_softmaxes() -> Graph:
    """One on the device, then one on the host."""
    builder = GraphBuilder([TensorType("f32", SHAPE)])
    first = builder.add("softmax", (0,), {"axis": 1}, (7,), "acc")
    return builder.finish([builder.add("softmax", (first,), {"axis": 1}, (8,), "host")])


def fused_with(rule: Expansion | None) -> FusedGraph:
    """Two softmaxes over the host and the test back end."""
    legalise = {} if rule is None else {"softmax": rule}
    placed = place(OptimizedGraph(two_softmaxes()), DEVICES)
    return fuse(placed, (device_rules(str(BEST)), rules_without_rows(legalise)))


def test_an_op_without_a_kernel_is_refused_where_nothing_expands_it() -> None:
    """The table of the device decides, not that of the host."""
    with pytest.raises(UnsupportedError, match="no lowering for softmax"):
        fused_with(None)


def test_the_device_alone_expands() -> None:
    """What the op becomes runs on its device, in the name of the user's node; the host's softmax is
    as it was."""
    groups = groups_of(fused_with(softmax_as_loops))
    here = [{node.op for node in group.nodes} for group in groups if group.device == 0]
    there = [group for group in groups if group.device == 1]
    assert {"softmax"} in here
    assert there
    assert {node.op for group in there for node in group.nodes} == {"reduce", "sub", "exp", "div"}
    assert {group.source for group in there} == {(7,)}


def test_it_means_the_same() -> None:
    """The machine code of the expanded graph gives what the graph says."""
    x = normal(1, *SHAPE)
    graph = two_softmaxes()
    (expected,) = interpret(graph, [x], no_constants)
    (found,) = run_compiled(
        compile_fused(fused_with(softmax_as_loops), BEST), graph, [x], no_constants
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def no_constants(digest: str) -> memoryview:
    """The graph has none."""
    raise AssertionError(digest)


WRONG: dict[str, Expansion] = {
    "another type": lambda builder, _: (builder.add("cast", (0,), {"dtype": "f64"}),),
    "its operand": lambda builder, _: (0,),
    "nothing": lambda builder, _: (),
    "too much": lambda builder, _: (builder.add("exp", (0,)), builder.add("exp", (0,))),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_results_are_refused(case: str) -> None:
    """A rule that is wrong is our mistake, and told with the op."""
    with pytest.raises(
        InternalError, match="the expansion of softmax for a device gives other results"
    ):
        fused_with(WRONG[case])
