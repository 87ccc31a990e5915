"""How much work an op is taken to be: what the predictions of ``--place auto`` count."""

from __future__ import annotations

from ingot_compiler.ir.parse_graph import parse_graph
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.op_work import Work, setting_of, work_of
from ingot_compiler.placement.predicted_time import work_picoseconds

GRAPH = """graph(%0: f32[1, 8, 4, 4]) {
  %1 = constant() {dtype="f32", shape=[8, 8, 3, 3], weight="0"} : f32[8, 8, 3, 3]
  %2 = conv(%0, %1) {dilations=[1, 1], groups=1, pads_after=[1, 1], pads_before=[1, 1], strides=[1, 1]} : f32[1, 8, 4, 4] @[0]
  %3 = relu(%2) : f32[1, 8, 4, 4] @[1]
  %4 = concat(%3, %0) {axis=1} : f32[1, 16, 4, 4] @[2]
  %5 = exp(%4) : f32[1, 16, 4, 4] @[3]
  %6 = transpose(%5) {permutation=[0, 2, 3, 1]} : f32[1, 4, 4, 16] @[4]
  %7 = copy(%6) {destination="acc"} : f32[1, 4, 4, 16]
  %8 = reshape(%7) {shape=[16, 16]} : f32[16, 16] @[5]
  %9 = reshape(%8) {shape=[256]} : f32[256] @[6]
  return %9
}
"""
IMAGE = 4 * 8 * 16


def works() -> dict[int, Work]:
    """Of each value's node."""
    graph = parse_graph(GRAPH)
    setting = setting_of(graph)
    return {node.results[0]: work_of(node, setting) for node in graph.nodes}


def test_what_ops_cost() -> None:
    """Padding is a launch, and weights are counted apart; an elementwise op joins what computes its
    operand, and nothing else; each operand of a concatenation is a launch; a reshape is one where
    its operand is transposed, also behind a copy."""
    found = works()
    weights = 4 * 8 * 8 * 9
    assert found[1] == Work()
    assert found[2] == Work(2 * 128 * 72, 0, 2 * IMAGE, weights, 2)
    assert found[3] == Work(0, 128, 0, 0, 0)
    assert found[4] == Work(0, 0, 4 * IMAGE, 0, 2)
    assert found[5] == Work(0, 256, 4 * IMAGE, 0, 1)
    assert found[6] == found[7] == found[9] == Work()
    assert found[8] == Work(0, 0, 4 * IMAGE, 0, 1)


def test_weights_beyond_the_cache() -> None:
    """They take time of their own; what the cache holds takes none."""
    costs = DeviceCosts(1e12, 1e12, 1e12, 1e9, 1000, 0.0)
    small, large = (Work(1000, 0, 0, size_bytes, 0) for size_bytes in (1000, 3000))
    assert work_picoseconds(large, costs) - work_picoseconds(small, costs) == 2_000_000
    assert work_picoseconds(small, costs) == work_picoseconds(Work(1000, 0, 0, 0, 0), costs)
