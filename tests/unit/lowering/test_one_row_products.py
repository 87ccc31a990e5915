"""Products of an open number of rows: a kernel for one row beside that for any number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import compile_graph

import ingot
from ingot_compiler.lowering.groups.fused import launches_of

DEPTH, COLUMNS = 96, 200


@pytest.mark.broad
@pytest.mark.parametrize("constant", [True, False])
def test_open_rows_give_the_bits_of_fixed_ones(tmp_path: Path, *, constant: bool) -> None:
    """Of weights and of a second input, with what follows in the same kernel."""
    rng = np.random.default_rng(12)
    b = rng.standard_normal((DEPTH, COLUMNS)).astype(np.float32)
    nodes = [node("MatMul", "x b", "m"), node("Relu", "m", "y")]
    found: dict[int, list[Array]] = {1: [], 3: []}
    for sizes, count in ((("rows",), 2), ((1,), 1), ((3,), 1)):
        inputs = [tensor("x", [*sizes, DEPTH])]
        if not constant:
            inputs.append(tensor("b", [DEPTH, COLUMNS]))
        model = make_model(nodes, inputs, [tensor("y", None)], {"b": b} if constant else {})
        launches = launches_of(compile_graph(translate(model, MemoryStore())[0]).fused)
        assert [step.group.kind for step in launches].count("matmul") == count
        ingot.compile(model).save(tmp_path / "m.ingot")
        for rows in (1, 3):
            if sizes[0] in ("rows", rows):
                x = np.arange(rows * DEPTH, dtype=np.float32).reshape(rows, DEPTH) / 100 - 1
                feed: dict[str, Array] = {"x": x} if constant else {"x": x, "b": b}
                found[rows] += [each["y"] for each in run_all_ways(tmp_path / "m.ingot", [feed])]
    for results in found.values():
        assert len(results) > 1
        assert all(y.tobytes() == results[0].tobytes() for y in results)


def test_small_products_have_one_kernel() -> None:
    """A second kernel would not pay."""
    b = np.ones((8, 8), np.float32)
    model = make_model(
        [node("MatMul", "x b", "y")], [tensor("x", ["rows", 8])], [tensor("y", None)], {"b": b}
    )
    graph = compile_graph(translate(model, MemoryStore())[0])
    assert len(list(launches_of(graph.fused))) == 1
