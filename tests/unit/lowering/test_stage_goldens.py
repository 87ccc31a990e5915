"""Goldens of stages 2 to 8 and of main's program: the smallest input in, the stage's text out; a
folder per stage, a file per case.

A file holds a comment, the input, a line ``==>``, the text. ``pytest --bless`` rewrites what
follows that line. The input of ``imported`` is a model in ONNX's own text form (``onnx.parser``),
that of ``graph`` an imported model, that of all others a graph. Marks may name ``acc``, a ``null``
device, on which nodes of a model run whose results begin with ``acc_``; the target is x86-64-v3.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from onnx import parser
from tests.harness.frontend_harness import no_external
from tests.harness.lowering_harness import Compiled, compile_fused

from ingot_compiler.backends.host.hooks import device_rules, lower_group
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.host_program.main_program import build_program
from ingot_compiler.host_program.parse_program import parse_program
from ingot_compiler.host_program.print_program import print_program
from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.groups.fused import FusedGraph, groups_of
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.parse_fused import parse_fused
from ingot_compiler.lowering.groups.parse_lowered import parse_lowered
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.lowering.groups.print_lowered import print_lowered
from ingot_compiler.memory.parse_memory import parse_memory
from ingot_compiler.memory.print_memory import print_memory
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.place import place
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.print_placed import print_placed
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice
from ingot_compiler.targets.target import parse_target

FOLDER = Path(__file__).parents[2] / "golden"
ARROW = "==>\n"
TARGET = parse_target("x86-64-v3")
HOST = DeclaredDevice("host", VirtualDevice(HOST_TYPE, 0))
ACC = DeclaredDevice("acc", VirtualDevice("null", 0, "null:x86-64-v3"))


def _imported(text: str) -> ImportedModel:
    model = parser.parse_model(text.partition("\n")[2])  # behind the comment
    place = [("acc_*", "acc")] if "acc_" in text else []
    return import_model(model.SerializeToString(), no_external, _weight_numbers(), [], place)[0]


def _weight_numbers() -> Callable[[memoryview], str]:
    numbers = itertools.count()
    return lambda _: str(next(numbers))


def _graph(text: str) -> Graph:
    return infer_types(parse_imported(text), _no_weights).graph


def _no_weights(weight: str) -> memoryview:
    raise AssertionError(f"weight {weight} decides no type here")


def _placed(text: str) -> PlacedGraph:
    devices = (HOST, ACC) if '"acc"' in text else (HOST,)
    return place(OptimizedGraph(parse_graph(text)), devices)


def _fused(text: str) -> FusedGraph:
    placed = _placed(text)
    return fuse(placed, [device_rules(str(TARGET))] * len(placed.devices))


def _lowered(text: str) -> LoweredGroup:
    (group,) = groups_of(_fused(text))
    return lower_group(group, str(TARGET))


def _compiled(text: str) -> Compiled:
    return compile_fused(_fused(text), TARGET)


def _program(text: str) -> str:
    compiled = _compiled(text)
    offsets = [0] * len(compiled.fused.constants)
    kernels = range(len(compiled.programs))
    program, _ = build_program(compiled.fused, compiled.programs, kernels, compiled.plan, offsets)
    return print_program(program)


STAGES: Mapping[str, tuple[Callable[[str], str], Callable[[str], Any], Callable[[Any], str]]] = {
    "imported": (lambda text: print_imported(_imported(text)), parse_imported, print_imported),
    "graph": (lambda text: print_graph(_graph(text)), parse_graph, print_graph),
    "optimized": (
        lambda text: print_graph(optimize(parse_graph(text)).graph),
        parse_graph,
        print_graph,
    ),
    "placed": (lambda text: print_placed(_placed(text)), parse_placed, print_placed),
    "fused": (lambda text: print_fused(_fused(text)), parse_fused, print_fused),
    "loops": (lambda text: print_lowered(_lowered(text)), parse_lowered, print_lowered),
    "memory": (lambda text: print_memory(_compiled(text).plan), parse_memory, print_memory),
    "program": (_program, parse_program, print_program),
}
"""Stage -> its text of a case's input, its parser, its printer."""
CASES = sorted(
    str(path.relative_to(FOLDER)) for stage in STAGES for path in (FOLDER / stage).glob("*.txt")
)


@pytest.mark.parametrize("case", CASES)
def test_a_stage_gives_the_golden_text(case: str, bless: bool) -> None:
    """The stage named by the folder, made from the input, has the text; the text is read back."""
    path = FOLDER / case
    make, parse, printed = STAGES[path.parent.name]
    head, _, expected = path.read_text(encoding="utf-8").partition(ARROW)
    found = make(head)
    assert printed(parse(found)) == found
    if bless:
        path.write_text(head + ARROW + found, encoding="utf-8")
    else:
        assert found == expected


def test_every_stage_has_goldens() -> None:
    """One folder per stage, with a case at least."""
    assert {Path(case).parent.name for case in CASES} == set(STAGES)
