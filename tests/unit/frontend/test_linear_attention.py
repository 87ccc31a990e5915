"""Attention by a matrix that every token changes: kernels against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_harness import Builder, check_graph, f32, normal

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.targets.target import Target


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("heads", [(2, 2, 2), (2, 2, 4), (1, 1, 3), (6, 2, 2), (4, 1, 2)])
@pytest.mark.parametrize("tokens", [0, 1, 5])
@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.sweep(45)
def test_kernels_give_what_the_interpreter_does(
    target: Target, heads: tuple[int, int, int], tokens: int, *, corrects: bool, is_open: bool
) -> None:
    """Heads of keys and queries that several states share, or states that several queries do; a
    decay for each row and one for all; columns beyond whole vectors."""
    queries, keys, count = heads
    batch, depth, columns = 2, 12, 21
    sizes: tuple[Dim, Dim] = (symbol("batch"), symbol("tokens")) if is_open else (batch, tokens)
    of_decay = depth if is_open else 1
    shapes = [(queries, depth), (keys, depth), (count, columns), (count, of_decay), (count,)]
    inputs = [f32(*sizes, *shape) for shape in shapes]
    builder = Builder([*inputs, f32(sizes[0], count, depth, columns)])
    found = builder.add_many("linear_attention", range(6), {"corrects": corrects, "scale": 0.25})
    feeds = [normal(number, batch, tokens, *shape) for number, shape in enumerate(shapes)]
    feeds[3] = np.exp(-abs(feeds[3]))
    feeds.append(normal(9, batch, count, depth, columns))
    check_graph(builder, found, feeds, targets=[target])


def test_heads_that_do_not_divide_each_other() -> None:
    """No query has one state then."""
    shapes = [(1, 1, 3, 4), (1, 1, 2, 4), (1, 1, 2, 4), (1, 1, 2, 1), (1, 1, 2), (1, 2, 4, 4)]
    builder = Builder([f32(*shape) for shape in shapes])
    with pytest.raises(OpTypeError, match="divide"):
        builder.add_many("linear_attention", range(6), {"corrects": True, "scale": 1.0})
