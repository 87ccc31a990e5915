"""How much work an op is taken to be: what the predictions of ``--place auto`` count."""

from __future__ import annotations

import pytest

from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.kernels.products.product_share import product_share
from ingot_compiler.placement.device_costs import DeviceCosts
from ingot_compiler.placement.op_work import Work, setting_of, work_of
from ingot_compiler.placement.predicted_time import DeviceTimes, work_picoseconds

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
    passed = round(weights * 16 / 6)
    assert found[2] == Work(2 * 128 * 72, 0, 2 * IMAGE, weights, passed, launch_count=2)
    assert found[3] == Work(0, 128)
    assert found[4] == Work(0, 0, 4 * IMAGE, launch_count=2)
    assert found[5] == Work(0, 256, 4 * IMAGE, launch_count=1)
    assert found[6] == found[7] == found[9] == Work()
    assert found[8] == Work(0, 0, 4 * IMAGE, launch_count=1)


@pytest.mark.parametrize(("pads", "launch_count"), [("(n - 2)", 2), ("1", 2), ("0", 1)])
def test_padding_of_an_open_size(pads: str, launch_count: int) -> None:
    """A pad that only a run knows is one, as numbers are."""
    text = f"""graph(%0: f32[1, 8, n, 4]) {{
  %1 = constant() {{dtype="f32", shape=[8, 8, 1, 1], weight="0"}} : f32[8, 8, 1, 1]
  %2 = conv(%0, %1) {{dilations=[1, 1], groups=1, pads_after=[0, 0], pads_before=[{pads}, 0], strides=[1, 1]}} : f32[1, 8, n + {pads}, 4]
  return %2
}}
"""
    graph = parse_graph(text)
    assert work_of(graph.nodes[1], setting_of(graph)).launch_count == launch_count


def test_weights_beyond_the_cache() -> None:
    """They take time of their own, each time that they pass by; what the cache holds takes none."""
    costs = DeviceCosts(1e12, 1e12, 1e12, 1e9, 1000, 0.0)
    small, large = (Work(1000, 0, 0, size_bytes, size_bytes) for size_bytes in (1000, 3000))
    passed = Work(1000, 0, 0, 3000, 6000)
    assert work_picoseconds(large, costs) - work_picoseconds(small, costs) == 2_000_000
    assert work_picoseconds(passed, costs) - work_picoseconds(small, costs) == 4_000_000
    assert work_picoseconds(small, costs) == work_picoseconds(Work(1000), costs)


def share_of(channels: int, taps: int, is_constant: bool = True) -> float:
    """Of the products of a convolution of 56x56 pixels, with 32 channels of results."""
    shape = f"[32, {channels}, {taps}, {taps}]"
    given, made = f", %1: f32{shape}", ""
    if is_constant:
        given = ""
        made = f'%1 = constant() {{dtype="f32", shape={shape}, weight="0"}} : f32{shape}'
    pads = f"[{taps // 2}, {taps // 2}]"
    around = f"pads_after={pads}, pads_before={pads}, strides=[1, 1]"
    graph = parse_graph(f"""graph(%0: f32[1, {channels}, 56, 56]{given}) {{
  {made}
  %2 = conv(%0, %1) {{dilations=[1, 1], groups=1, {around}}} : f32[1, 32, 56, 56] @[0]
  return %2
}}
""")
    return product_share(graph.nodes[-1], setting_of(graph))


def test_products_of_winograds_algorithm() -> None:
    """The host's kernels leave out some of the products of some convolutions: those of 3x3 taps with
    enough channels and constant weights."""
    assert 0.44 < share_of(64, 3) < 0.8
    assert share_of(64, 1) == share_of(24, 3) == share_of(64, 3, is_constant=False) == 1


def test_a_share_of_the_products_takes_a_share_of_the_time() -> None:
    """Of products, and of nothing else."""
    graph = parse_graph(GRAPH)
    costs, setting = DeviceCosts(1.0, 1.0, 1e30, 1e30, 0, 0.0), setting_of(graph)
    conv, relu = graph.nodes[1:3]
    whole, half = DeviceTimes(costs), DeviceTimes(costs, lambda _node, _setting: 0.5)
    assert half.of_node(conv, setting) * 2 == whole.of_node(conv, setting) > 0
    assert half.of_node(relu, setting) == whole.of_node(relu, setting) > 0
