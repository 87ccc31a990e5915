"""Goldens of the passes: text in, text out; a folder per pass, a file per case.

A file holds a comment, the graph before, a line ``==>``, the graph after. ``pytest --bless``
rewrites what follows that line. Every case is also run: before and after give the same numbers.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.pipeline import INTEGER_PASSES, PASSES

FOLDER = Path(__file__).parents[2] / "golden"
BY_NAME = {run.__name__: run for run in (*INTEGER_PASSES, *PASSES)}
CASES = sorted(
    str(path.relative_to(FOLDER)) for name in BY_NAME for path in (FOLDER / name).glob("*.txt")
)
ARROW = "==>\n"
SIZES = {"s0": 2, "s1": 3, "s2": 4}


def read_constant(digest: str) -> memoryview:
    """Positive f32 between 0.5 and 1.5, different for every digest; long enough for any constant of
    the goldens."""
    seed = int.from_bytes(hashlib.sha256(digest.encode()).digest()[:4], "little")
    return memoryview(
        (np.random.default_rng(seed).random(1 << 16, np.float32) + np.float32(0.5)).tobytes()
    )


def sample(tensor: TensorType, seed: int) -> Array:
    """An input of any element type with the symbols' sizes of ``SIZES``."""
    draw = np.random.default_rng(seed)
    shape = tuple(evaluate(dim, SIZES) for dim in tensor.shape)
    numbers = (
        draw.integers(0, 2, shape) if tensor.dtype in ("bool", "i64") else draw.normal(size=shape)
    )
    return np.asarray(numbers).astype(STORAGE_DTYPES[tensor.dtype])


def run(graph: Graph) -> tuple[Array, ...]:
    """The graph's outputs for sampled inputs."""
    sizes = {
        node.text("weight"): graph.types[node.results[0]].size_bytes
        for node in graph.nodes
        if node.op == "constant"
    }
    inputs = [sample(graph.types[value], value) for value in graph.inputs]
    return interpret(graph, inputs, lambda digest: read_constant(digest)[: int(str(sizes[digest]))])


@pytest.mark.parametrize("case", CASES)
def test_pass_gives_the_golden_text(case: str, bless: bool) -> None:
    """The pass named by the folder turns the first graph into the second."""
    path = FOLDER / case
    head, _, expected = path.read_text(encoding="utf-8").partition(ARROW)
    found = print_graph(BY_NAME[path.parent.name](parse_graph(head)))
    if bless:
        path.write_text(head + ARROW + found, encoding="utf-8")
    else:
        assert found == expected


@pytest.mark.parametrize("case", CASES)
def test_golden_graphs_mean_the_same(case: str) -> None:
    """Before and after agree on the reference interpreter, up to rounding where a pattern is
    fused."""
    before, after = (
        parse_graph(text) for text in (FOLDER / case).read_text(encoding="utf-8").split(ARROW)
    )
    assert parse_graph(print_graph(after)) == after
    for left, right in zip(run(before), run(after), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(
            left.astype(np.float64), right.astype(np.float64), rtol=2e-5, atol=2e-6
        )


@pytest.mark.parametrize("case", CASES)
def test_passes_are_idempotent(case: str) -> None:
    """A pass that has run changes nothing when it runs again."""
    run_pass = BY_NAME[Path(case).parent.name]
    after = parse_graph((FOLDER / case).read_text(encoding="utf-8").split(ARROW)[1])
    assert run_pass(after) == after


def test_every_pass_has_goldens_that_fire_and_that_must_not() -> None:
    """One folder per pass; at least one case changes the graph, at least one (``not_*``) leaves it
    as it is."""
    for name in BY_NAME:
        files = sorted((FOLDER / name).glob("*.txt"))
        refused = [path for path in files if path.name.startswith("not_")]
        assert refused, name
        assert len(files) > len(refused), name
        for path in refused:
            before, after = path.read_text(encoding="utf-8").split(ARROW)
            assert print_graph(parse_graph(before)) == after, path
