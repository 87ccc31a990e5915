"""Equal numbers of a graph under construction are one node.

In: a builder. Out: what it shares, and what it must not. Not done here: equal nodes of other ops
(``test_passes_golden.py``).
"""

from __future__ import annotations

from ingot_compiler.ir.builder import GraphBuilder


def test_equal_numbers_are_one_node_of_all_sources() -> None:
    """It keeps the places in the model that all of them come from."""
    builder = GraphBuilder([])
    first, second = builder.scalar("f32", 0.5, (3,)), builder.scalar("f32", 0.5, (1, 2))
    (node,) = builder.finish([first, second]).nodes
    assert first == second
    assert node.source == (1, 2, 3)


def test_numbers_that_python_calls_equal_stay_apart() -> None:
    """Signs of zero, types and devices count."""
    builder = GraphBuilder([])
    made = [
        builder.scalar("f32", 0.0),
        builder.scalar("f32", -0.0),
        builder.scalar("f64", 0.0),
        builder.scalar("i32", 0),
        builder.scalar("bool", False),
        builder.scalar("f32", 0.0, (), "other device"),
    ]
    assert len(set(made)) == len(made)


def test_a_region_has_its_own() -> None:
    """A number in a body is not that of the graph around it."""
    outer = GraphBuilder([])
    outer.scalar("f32", 0.5)
    inner = outer.region([])
    value = inner.scalar("f32", 0.5)
    assert inner.finish([value]).nodes[0].results == (value,)
