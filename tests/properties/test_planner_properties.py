"""Properties of the planner on random programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.program_harness import canonical, check_same_results, erased
from tests.properties.random_programs import C, G, RandomProgram, small_program

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    OnDevice,
    OperatorCall,
    Variable,
)
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.network import LinkKind
from ingot_compiler.programs.planner.plan import Plan, plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import post_order

SAMPLE, ALL = 60, 1_000


def planned_or_none(program: Program) -> Plan | None:
    """The plan; None where annotations contradict one another."""
    try:
        return plan(program)
    except ModelError as error:
        if "annotations ask for two devices" not in error.what:
            raise
        return None


def check_random_program(seed: int) -> bool:
    """All properties of one program; False where annotations contradict."""
    random = Random(seed)
    program = RandomProgram(random).program()
    made = planned_or_none(program)
    if made is None:
        return False
    check_same_results(program, made.program, seed)  # sound, on separate memories
    text = canonical(made.program)
    assert canonical(plan(made.program).program) == text  # idempotent
    names = list(program.functions)
    random.shuffle(names)
    shuffled = replace(program, functions={name: program.functions[name] for name in names})
    assert canonical(plan(shuffled).program) == text  # independent of order
    assert erased(made.program) == erased(program)
    assert canonical(parse_program(print_program(made.program))) == text
    return True


def test_random_programs_sample() -> None:
    """Plans are sound, idempotent, independent of the order of functions, give what the program
    gives on devices with separate memories, can be read back, and erase to the program."""
    found = [check_random_program(seed) for seed in range(SAMPLE)]
    assert sum(found) > SAMPLE // 2


@pytest.mark.slow
def test_random_programs_all() -> None:
    """The same for 1,000 programs that do not contradict themselves."""
    count, seed = 0, 0
    while count < ALL:
        count += check_random_program(seed)
        seed += 1
    assert seed < 2 * ALL


@settings(max_examples=25)
@given(st.integers(min_value=SAMPLE))
def test_random_programs_by_hypothesis(seed: int) -> None:
    """The same for programs that hypothesis chooses."""
    check_random_program(seed)


Cost = tuple[int, int, int]


def values_of(program: Program) -> list[Expression]:
    """Parameters and calls, and the result of the function in the last place."""
    main = program.functions["main"]
    found = [one for one in post_order([main]) if not isinstance(one, OnDevice)]
    unread = [one for one in main.parameters if one not in found]
    return [*unread, *found]


def uses_of(program: Program) -> Iterator[tuple[Expression, Expression]]:
    """(reader, what it reads, perhaps annotated)."""
    for expression in values_of(program):
        if isinstance(expression, OperatorCall | FunctionLiteral):
            for operand in expression.operands:
                yield expression, operand


def cost_of_use(
    reader: Expression, operand: Expression, where: dict[Expression, VirtualDevice]
) -> Cost | None:
    """Broken annotations, copies that nobody asked for, copies that are allowed; None where the
    use is not allowed."""
    there = where[reader]
    if not isinstance(operand, OnDevice):
        return 0, int(where[operand] != there), 0
    here, asked = where[operand.body], operand.device
    if asked.is_open:
        return 0, 0, int(here != there)
    if operand.is_fixed:
        return (0, 0, 0) if here == asked == there else None
    if isinstance(operand.body, OperatorCall) and here != asked:
        return None  # an annotated call runs where the annotation says
    if isinstance(reader, FunctionLiteral) and there != asked:
        return None  # an annotated result is where the annotation says
    return int(here != asked), 0, 0


def is_declared_elsewhere(value: Expression, device: VirtualDevice) -> bool:
    """Whether a parameter has another device."""
    return isinstance(value, Variable) and value.device not in (UNCONSTRAINED, device)


def least_cost(program: Program) -> Cost | None:
    """The cheapest of all ways to give each value one of two devices."""
    values, uses = values_of(program), list(uses_of(program))
    best: Cost | None = None
    for devices in itertools.product((C, G), repeat=len(values)):
        where = dict(zip(values, devices, strict=True))
        if any(is_declared_elsewhere(value, device) for value, device in where.items()):
            continue
        costs = [cost_of_use(reader, operand, where) for reader, operand in uses]
        allowed = [cost for cost in costs if cost is not None]
        if len(allowed) == len(costs):
            total = tuple(map(sum, zip(*allowed, strict=True)))
            assert len(total) == 3
            best = total if best is None else min(best, total)
    return best


def check_minimal(seed: int) -> bool:
    """The planner breaks as few links as the best of all assignments; whether any is broken."""
    program = small_program(Random(seed))
    assert len(values_of(program)) <= 9
    made = planned_or_none(program)
    least = least_cost(program)
    assert (made is None) == (least is None)
    if made is None:
        return False
    kinds = [link.kind for link in made.solution.cut]
    order = LinkKind.ANNOTATED, LinkKind.USE, LinkKind.FREE
    assert tuple(map(kinds.count, order)) == least
    check_same_results(program, made.program)
    return bool(kinds)


def test_minimal_sample() -> None:
    """No assignment of devices to at most eight values needs fewer copies than the plan."""
    found = [check_minimal(seed) for seed in range(SAMPLE)]
    assert sum(found) > SAMPLE // 10


@pytest.mark.slow
def test_minimal_all() -> None:
    """The same for 1,000 programs."""
    found = [check_minimal(seed) for seed in range(ALL)]
    assert sum(found) > ALL // 10
