"""Slices whose bounds and steps are the numbers that exporters write for "to the end".

In: the extremes of i32 and i64, their neighbours, on axes that are known and open. Out: numpy's
slices. Not done here: bounds that are no numbers of the model (their arithmetic is in i64).
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor

import ingot

_I64, _I32 = (1 << 63) - 1, (1 << 31) - 1
ENDS = (_I64, _I64 - 1, -_I64 - 1, -_I64, _I32, _I32 + 1, -_I32, -_I32 - 1, 1 << 62, -(1 << 62))
SIZES = (0, 1, 2, 5)


def _triples() -> list[tuple[int, int, int]]:
    """(start, end, step)."""
    forwards = [(start, end, 1) for end in ENDS for start in (0, 1, -1)]
    forwards += [(start, end, 1) for start in ENDS for end in (_I64, _I32, 1, -1)]
    backwards = [(start, end, -1) for end in ENDS for start in (0, 1, -1, _I64)]
    far = [(0, _I64, step) for step in ENDS if step > 0]
    far += [(-1, -_I64 - 1, step) for step in ENDS if step < 0]
    return [*forwards, *backwards, *far]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("size", ["n", 5])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_mean_to_the_end(size: int | str, axis: int, tmp_path: Path) -> None:
    """All of them in one model, on the outer and inner axis: what numpy gives for every size."""
    nodes, constants = list[NodeProto](), {"axes": np.array([axis])}
    triples = _triples()
    numbers = {name for triple in triples for name in triple}
    constants |= {f"c{number}".replace("-", "m"): np.array([number]) for number in numbers}
    for place, triple in enumerate(triples):
        start, end, step = (f"c{number}".replace("-", "m") for number in triple)
        nodes.append(node("Slice", f"x {start} {end} axes {step}", f"y{place}"))
    shape: list[int | str] = [3, 3]
    shape[axis] = size
    outputs = [tensor(f"y{place}", None) for place in range(len(triples))]
    path = tmp_path / "model.ingot"
    ingot.compile(make_model(nodes, [tensor("x", shape)], outputs, constants)).save(path)
    feeds: list[dict[str, Array]] = []
    for count in SIZES if size == "n" else (5,):
        own = [3, 3]
        own[axis] = count
        feeds.append({"x": np.arange(3 * count, dtype=np.float32).reshape(own)})
    for (place, triple), (feed, results) in itertools.product(
        enumerate(triples), zip(feeds, run_all_ways(path, feeds), strict=True)
    ):
        parts = (slice(None),) * axis + (slice(*triple),)
        np.testing.assert_array_equal(results[f"y{place}"], feed["x"][parts], str(triple))
