"""Random graphs through the whole pipeline: bundle, loader, native ``main`` and stepped, against
the interpreter."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.harness.end_to_end_harness import GraphModel, run_all_ways
from tests.harness.lowering_graphs import bindings, graphs, inputs_for
from tests.harness.lowering_harness import Builder, assert_close

from ingot_compiler.ir.sizes.profile import Profile, SizeRange
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret


def _profiles(calls: list[dict[str, int]]) -> list[Profile]:
    """Of the first call, and of the last one: without its last symbol, with a range for it."""
    first, last = (
        tuple(SizeRange(name, size, size) for name, size in sorted(call.items()))
        for call in (calls[0], calls[-1])
    )
    around = tuple(SizeRange(each.symbol, each.least // 2, each.most) for each in last[-1:])
    return [profile for profile in (first, last[:-1], around) if profile]


Drawn = tuple[Builder, list[TensorType], tuple[int, ...]]


@pytest.mark.broad
@settings(
    max_examples=12, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(
    drawn=graphs(smooth=False),
    calls=st.lists(bindings(), min_size=1, max_size=3),
    special=st.booleans(),
)
def test_one_bundle_for_all_sizes(drawn: Drawn, calls: list[dict[str, int]], special: bool) -> None:
    """Sizes, workspace and instructions of ``main`` are right for any sizes of the symbols, call
    after call.

    Also where the sizes of the first call have a version of their own, those of the last one but
    for a symbol that is open, and a range around it a third.
    """
    builder, types, outputs = drawn
    graph = builder.finish(outputs)
    feeds = [inputs_for(types, sizes, seed) for seed, sizes in enumerate(calls)]
    profiles = _profiles(calls) if special else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.ingot"
        GraphModel(graph, list(builder.store.values()), profiles).save(str(path))
        results = run_all_ways(
            path, [{f"x{index}": array for index, array in enumerate(feed)} for feed in feeds]
        )
    for feed, result in zip(feeds, results, strict=True):
        for expected, actual in zip(
            interpret(graph, feed, builder.read), result.values(), strict=True
        ):
            assert_close(np.asarray(expected), actual, 0.0)
