"""Stages 5 to 7 of random graphs: each keeps its rules, and is what its own text gives back."""

from hypothesis import given, settings
from tests.properties.test_ir_text import graphs
from tests.stage_checks import check_fused, check_lowered, check_placed

from ingot_compiler.backends.host.hooks import device_rules, lower_group
from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.groups.fused import groups_of
from ingot_compiler.placement.place import place
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice

TARGET = "x86-64-v3"
DEVICES = (
    DeclaredDevice("host", VirtualDevice(HOST_TYPE, 0)),
    DeclaredDevice("acc", VirtualDevice("null", 0, f"null:{TARGET}")),
    DeclaredDevice('quote"\\\n', VirtualDevice("null", 1, f"null:{TARGET}")),
)


@given(graphs())
@settings(max_examples=100)
def test_parsing_undoes_printing(graph: Graph) -> None:
    """Symbolic sizes, marks of three devices, one of whose names needs escapes, copies between
    them."""
    placed = place(OptimizedGraph(graph), DEVICES)
    check_placed(placed, every=1)
    fused = fuse(placed, [device_rules(TARGET)] * len(DEVICES))
    check_fused(fused, every=1)
    for group in groups_of(fused):
        check_lowered(lower_group(group, TARGET), group, fused.buffers, every=1)
