"""Groups give way to their launches: buffers, programs, symbols and steps are those of the whole
graph."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.harness.lowering_harness import BEST, compile_graph

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import dim_min, symbol
from ingot_compiler.ir.sizes.profile import SizeRange
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.expand_groups import expand_groups
from ingot_compiler.lowering.groups.fused import (
    BufferSpec,
    FusedGraph,
    Group,
    IfStep,
    Launch,
    Operand,
    Specialisation,
    SymbolSet,
    View,
    launches_of,
)
from ingot_compiler.lowering.groups.group_steps import (
    Choice,
    GroupLaunch,
    GroupSteps,
    LoweredGroup,
    choose,
    launch_count,
)
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kinds import KINDS
from ingot_compiler.lowering.lower import lower
from ingot_compiler.memory.plan_memory import plan_memory

KIND = TensorType("f32", (4,))
ONCE = GroupSteps((GroupLaunch(0, (0, 1)),))
GUARDED = GroupSteps(
    (
        GroupLaunch(0, (0, 2)),
        Choice(dim_min(symbol("n"), 1), (GroupLaunch(1, (0, 1)),), (GroupLaunch(2, (0, 2, 1)),)),
    ),
    (("f32", 16),),
)
"""A launch into workspace, then one of two others, which the size ``n`` decides."""


def group(read: int, written: int) -> Group:
    """A group from one buffer to another."""
    operand, result = (Operand(buffer, KIND, buffer, View((1,))) for buffer in (read, written))
    return Group(
        Method("pointwise"),
        (),
        (operand,),
        (result,),
        ((read, KIND), (written, KIND)),
        source=(written,),
        device=0,
    )


def graph(*steps: Group) -> FusedGraph:
    """Groups over an input, two workspace buffers and an output."""
    own = BufferSpec("workspace", "f32", 4)
    buffers = (BufferSpec("input", "f32", 4, 0), own, own, BufferSpec("output", "f32", 4, 0))
    return FusedGraph((KIND,), (KIND,), buffers, steps, ())


def test_a_group_of_one_launch_is_that_launch() -> None:
    """Nothing else of the graph changes."""
    first, second = group(0, 1), group(1, 3)
    fused = graph(first, second)
    expanded = expand_groups(fused, (ONCE, ONCE))
    assert expanded.steps == (Launch(first, 0, (0, 1)), Launch(second, 1, (1, 3)))
    assert replace(expanded, steps=fused.steps) == fused


def test_steps_of_a_group_speak_of_the_graph_s_buffers_programs_and_symbols() -> None:
    """Workspace comes behind the buffers, programs behind those of the groups before, and each
    group's choices have symbols of their own."""
    first, second = group(0, 1), group(1, 3)
    expanded = expand_groups(graph(first, second), (GUARDED, GUARDED))
    assert expanded.buffers[4:] == (BufferSpec("workspace", "f32", 16),) * 2
    assert expanded.steps[3:] == (
        Launch(second, 3, (1, 5)),
        SymbolSet(("group1_choice0",), (dim_min(symbol("n"), 1),)),
        IfStep("group1_choice0", (Launch(second, 4, (1, 3)),), (Launch(second, 5, (1, 5, 3)),)),
    )
    assert launch_count((GUARDED, GUARDED)) == len(launches_of(expanded)) == 6
    assert [bool(launch.results) for launch in launches_of(expanded)] == [False, True, True] * 2


def test_workspace_of_one_group_is_free_behind_it() -> None:
    """The partial results of two groups share their memory; neither shares it with what is live
    beside them."""
    plan = plan_memory(
        expand_groups(graph(group(0, 1), group(1, 2), group(2, 3)), (GUARDED, GUARDED, ONCE))
    )
    first, last = (
        {item.buffer: item.first for item in plan.placements},
        {item.buffer: item.last for item in plan.placements},
    )
    assert (first[4], last[4], first[5], last[5]) == (0, 4, 6, 10)
    offsets = {item.buffer: item.offset_bytes for item in plan.placements}
    assert offsets[4] == offsets[5]
    assert len({offsets[1], offsets[4]}) == 2


def test_the_other_way_to_run_begins_where_its_first_group_does() -> None:
    """``Specialisation.first_step`` counts the steps that are there now."""
    fused = replace(
        graph(group(0, 1), group(1, 3), group(0, 3)),
        specialisations=(Specialisation(2, (SizeRange("n", 4, 4),)),),
    )
    expanded = expand_groups(fused, (ONCE, GUARDED, ONCE))
    assert expanded.specialisations == (Specialisation(4, (SizeRange("n", 4, 4),)),)
    assert isinstance(expanded.steps[4], Launch)


def test_a_choice_keeps_the_programs_of_both_ways() -> None:
    """Those of the second are counted behind those of the first."""
    builder = GraphBuilder([KIND])
    (launch,) = launches_of(compile_graph(builder.finish([builder.add("neg", (0,))])).fused)
    one = lower(launch.group, BEST, KINDS)
    chosen = choose(symbol("n"), one, one)
    assert chosen == LoweredGroup(
        GroupSteps((Choice(symbol("n"), (GroupLaunch(0, (0, 1)),), (GroupLaunch(1, (0, 1)),)),)),
        (*one.programs, *one.programs),
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kinds_are_listed_by_their_own_names(kind: str) -> None:
    """What a group says of its kind is what the record says."""
    assert KINDS[kind].name == kind
