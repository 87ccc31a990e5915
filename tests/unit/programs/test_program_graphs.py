"""Programs as graphs: what can be inlined is a graph that gives the same numbers, the rest is
refused by name."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.harness.program_harness import random_inputs, read, weight_bytes
from tests.properties.random_programs import RandomProgram
from tests.unit.programs.test_planner_cases import CASES

from ingot_compiler.ir.errors import ModelError, UnsupportedError
from ingot_compiler.ir.verify import find_problems
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.oracles.interpret_program import interpret_program
from ingot_compiler.programs.lower_program import lower_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.program import Program

NO_GRAPH = {
    "13": "the operator shape_of", "14": "a parameter of type i64", "15": "a parameter of type",
    "16": "the operator reshape_tensor", "26": "a choice of functions", "31": "a call of a kernel",
}  # fmt: skip


def check_graph(program: Program, seed: int = 0) -> None:
    """The graph of a program's plan gives what the program gives."""
    graph = lower_program(plan(program).program).graph
    assert list(find_problems(graph)) == []
    inputs = random_inputs(program, seed)
    expected = interpret_program(program, inputs, weight_bytes)
    for one, other in zip(interpret(graph, inputs, weight_bytes), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if name[:2] not in NO_GRAPH])
def test_cases_are_graphs(name: str) -> None:
    """Functions, closures, tuples, data and references that are known disappear."""
    check_graph(read(CASES[name][0]))


@pytest.mark.parametrize("number", sorted(set(NO_GRAPH) - {"14"}))
def test_cases_that_are_no_graphs(number: str) -> None:
    """What a graph has not is refused by name and place."""
    (text,) = (text for name, (text, _) in CASES.items() if name.startswith(number))
    with pytest.raises(UnsupportedError, match=NO_GRAPH[number]) as found:
        lower_program(plan(read(text)).program)
    assert " at line " in found.value.where


REFUSED = {
    "recursion": """def @main(%c: bool[], %x: T) -> T {
      if (%c) { @main(logical_not(%c), neg(%x)) } else { %x }
    }""",
    "a reference that is written in a branch": """def @main(%c: bool[], %x: T) -> T {
      let %r = ref(%x);
      let %u = if (%c) { write(%r, neg(%x)) } else { () };
      read(%r)
    }""",
    "data or references as a result": """data L = N() or M(T)
    def @main(%c: bool[], %x: T) -> T {
      match (if (%c) { N() } else { M(%x) }) { N() -> { %x }, M(%y) -> { neg(%y) } }
    }""",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    """What depends on data and is no tensor is refused."""
    with pytest.raises(UnsupportedError, match=what):
        lower_program(plan(read(REFUSED[what])).program)


def test_no_entry() -> None:
    """A program that has no main is refused with what it has."""
    with pytest.raises(UnsupportedError, match="a program without an entry") as found:
        lower_program(plan(read("def @f(%x: T) -> T { %x }")).program)
    assert "got f" in found.value.why


def test_nodes_are_marked() -> None:
    """Each node has the name of its device in the plan, and leads to its place in the text."""
    made = lower_program(plan(read(CASES["02 left add on cpu"][0])).program)
    assert [(node.op, node.mark) for node in made.graph.nodes] == [
        ("add", "C"), ("add", "G"), ("sub", "G"),
    ]  # fmt: skip
    assert made.sources[made.graph.nodes[0].source[0]][1] == "add(%a, %b)"
    assert all(place.startswith("line 7") for place, _ in made.sources)


def test_random_programs() -> None:
    """Random programs that are graphs give the same numbers; the others are refused."""
    count = 0
    for seed in range(60):
        program = RandomProgram(Random(seed), fixed=0).program()
        try:
            check_graph(program, seed)
        except (UnsupportedError, ModelError):
            continue
        count += 1
    assert count > 20
