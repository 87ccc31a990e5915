"""Random programs, compiled: their bundles have the devices of their plans, and give what the
programs give."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.harness.program_harness import random_inputs, weight_bytes
from tests.properties.random_programs import RandomProgram
from tests.properties.test_planner_properties import planned_or_none

import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.oracles.interpret_program import interpret_program
from ingot_compiler.passes.eliminate_dead_code import eliminate_dead_code
from ingot_compiler.programs.lower_program import lower_program
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program

SAMPLE, ALL = 6, 400
GPU = 'device "G" id 0 type "cuda" target "cuda:sm_80" default'
PROCESSOR = 'device "G" id 0 type "cpu" default'


def marks(graph: Graph) -> set[str]:
    """The devices of all nodes, those inside of control flow too."""
    found = {node.mark for node in graph.nodes}
    return found.union(*(marks(region) for node in graph.nodes for region in node.regions))


def check_compiled(program: Program, graph: Graph, folder: Path, seed: int) -> None:
    """The bundle of a program has the devices of its graph beside the host, perhaps without those
    of what nobody reads, and gives its numbers."""
    path, output = folder / f"p{seed}.ingot-text", str(folder / f"p{seed}.ingot")
    path.write_text(print_program(program).replace(GPU, PROCESSOR))
    assert main(["compile", str(path), "-o", output, "--target", "x86-64-v3", "-q"]) == 0
    with ingot_runtime.load(output) as session:
        assert {"host"} | marks(eliminate_dead_code(graph)) <= set(session.devices)
        assert set(session.devices) <= {"host"} | marks(graph)
        for call in range(2):
            inputs = random_inputs(program, call)
            expected = interpret_program(program, inputs, weight_bytes)
            named: dict[str, Array] = dict(zip("xyc", inputs, strict=True))
            results = session.run({spec.name: named[spec.name] for spec in session.inputs})
            for result, right in zip(results.values(), expected, strict=True):
                np.testing.assert_array_equal(result, right)


def check_programs(count: int, folder: Path) -> None:
    """So many programs that are graphs."""
    found, seed = 0, 0
    while found < count:
        seed += 1
        program = RandomProgram(Random(seed), fixed=1, declared=20).program()
        made = planned_or_none(program)
        try:
            graph = lower_program(made.program).graph if made is not None else None
        except UnsupportedError:
            continue
        if graph is not None:
            check_compiled(program, graph, folder, seed)
            found += 1
    assert seed < 10 * count


def test_compiled_programs_sample(tmp_path: Path) -> None:
    """A compiled program runs on the devices of its plan."""
    check_programs(SAMPLE, tmp_path)


@pytest.mark.slow
def test_compiled_programs_all(tmp_path: Path) -> None:
    """The same for 400 programs."""
    check_programs(ALL, tmp_path)
