"""Plans do what their programs say, on random programs: annotated calls are on their devices,
declaring what was planned changes nothing, and an altered plan is refused unless it is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.harness.program_harness import canonical, check_same_results
from tests.properties.altered_plans import altered
from tests.properties.random_programs import RandomProgram
from tests.properties.test_planner_properties import planned_or_none
from tests.unit.programs.test_program_forms import device_blocks

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    LetIn,
    OnDevice,
    OperatorCall,
    Variable,
)
from ingot_compiler.programs.minimal_form import complete, minimise
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.network import result_cell
from ingot_compiler.programs.planner.plan import Plan, plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.verify_plan import find_plan_problems
from ingot_compiler.programs.walk import post_order, rebuild

SAMPLE, ALL = 200, 5_000
DECLARED = 30
"""Of 100 parameters, results and variables, so many have a device."""


def made_plan(seed: int) -> Plan | None:
    """The plan of a random program; None where it contradicts itself."""
    return planned_or_none(RandomProgram(Random(seed), declared=DECLARED).program())


def planned_device(made: Plan, expression: Expression) -> VirtualDevice:
    """Where the value of an expression of the prepared program is; of a function, its result."""
    return made.solution.device(result_cell(made.network.domains[expression]))


def check_annotated_calls(made: Plan) -> int:
    """Each call that is annotated is on its device; how many there are.

    The text of the plan says so as well: as many calls of each operator are on each device.
    """
    asked: list[tuple[str, VirtualDevice]] = []
    for annotation in post_order(made.prepared.functions.values()):
        body = annotation.operands[0] if annotation.operands else annotation
        if not isinstance(body, OperatorCall | FunctionCall):
            continue
        if isinstance(annotation, OnDevice) and annotation.constrain_body:
            assert planned_device(made, body) == annotation.device
        elif isinstance(annotation, DeviceCopy):
            assert planned_device(made, body) == annotation.source
        else:
            continue
        asked.append((type(body).__name__, planned_device(made, body)))
    assert calls_by_device(made) == [
        (one.operator, planned_device(made, one))
        for one in post_order(made.prepared.functions.values())
        if isinstance(one, OperatorCall)
    ]
    return len(asked)


def calls_by_device(made: Plan) -> list[tuple[str, VirtualDevice]]:
    """The calls of operators in the text of the plan, with the devices that the text gives them."""
    devices = recover_devices(made.program).devices
    return [
        (one.operator, devices[one])
        for one in post_order(made.program.functions.values())
        if isinstance(one, OperatorCall)
    ]


def test_annotated_calls_sample() -> None:
    """In every accepted program each annotated call runs on its device."""
    check_many(SAMPLE, check_annotated_calls)


@pytest.mark.slow
def test_annotated_calls_all() -> None:
    """The same for 5,000 programs."""
    check_many(ALL, check_annotated_calls)


def check_many(count: int, check: Callable[[Plan], int]) -> None:
    """Check the plans of so many random programs; many of them are accepted, and ask for much."""
    plans = [made for seed in range(count) if (made := made_plan(seed)) is not None]
    assert len(plans) > count // 5
    assert sum(map(check, plans)) > len(plans)


def declared(made: Plan, random: Random) -> Program:
    """The program with many of the devices of its plan written down: those of parameters, results
    and variables, and of operands that are where they are read."""
    variables: dict[Expression, Variable] = {}
    for expression in post_order(made.prepared.functions.values()):
        bound = expression.parameters if isinstance(expression, FunctionLiteral) else ()
        bound = (expression.variable,) if isinstance(expression, LetIn) else bound
        for variable in bound:
            device = planned_device(made, variable) if random.randrange(2) else variable.device
            variables[variable] = replace(variable, device=device)

    def rule(expression: Expression, operands: Sequence[Expression]) -> Expression:
        if isinstance(expression, Variable):
            return variables.get(expression, expression)
        if not operands:
            return expression
        operands = [fixed(expression, index, one) for index, one in enumerate(operands)]
        found = expression.with_operands(operands)
        if isinstance(found, LetIn):
            return replace(found, variable=variables[found.variable])
        if isinstance(found, FunctionLiteral):
            device = planned_device(made, expression) if random.randrange(2) else found.device
            parameters = tuple(variables[one] for one in found.parameters)
            return replace(found, parameters=parameters, device=device)
        return found

    def fixed(parent: Expression, index: int, operand: Expression) -> Expression:
        expected = made.network.expected.get((parent, index))
        here = planned_device(made, parent.operands[index])
        if random.randrange(8) or expected is None:
            return operand
        if made.solution.device(result_cell(expected)) != here:
            return operand
        return OnDevice(operand, here, constrain_result=True)

    functions: dict[str, FunctionLiteral] = {}
    for name, function in made.prepared.functions.items():
        found = rebuild(function, rule)
        assert isinstance(found, FunctionLiteral)
        functions[name] = found
    return replace(made.prepared, functions=functions)


def check_monotonic(made: Plan) -> int:
    """What is planned may be declared: the plan stays as it is."""
    text = canonical(minimise(made.program))
    for seed in range(2):
        program = declared(made, Random(seed))
        assert canonical(minimise(plan(program).program)) == text
    return 2


@pytest.mark.broad
def test_monotonicity_sample() -> None:
    """Declaring what the plan chose anyway changes nothing."""
    check_many(SAMPLE, check_monotonic)


@pytest.mark.slow
def test_monotonicity_all() -> None:
    """The same for 5,000 programs."""
    check_many(ALL, check_monotonic)


def check_altered(made: Plan) -> int:
    """An altered plan is refused by the checker, or does on separate memories what the program
    does, whatever the inputs are; how many are refused."""
    random, refused = Random(0), 0
    for _ in range(4):
        program = altered(made.program, random)
        if list(find_plan_problems(program)):
            refused += 1
        else:
            for seed in range(3):
                check_same_results(made.prepared, program, seed)
    return refused


@pytest.mark.broad
def test_altered_plans_sample() -> None:
    """The checker accepts no plan that reads what is on another device."""
    check_many(SAMPLE, check_altered)


@pytest.mark.slow
def test_altered_plans_all() -> None:
    """The same for the plans of 5,000 programs."""
    check_many(ALL, check_altered)


def check_minimal_form(made: Plan) -> int:
    """The minimal form, read back from its text, gives the plan, and no device of it may lack; how
    many were taken away."""
    text = print_program(minimise(made.program))
    again = parse_program(text)
    assert canonical(complete(again)) == canonical(complete(made.program))
    blocks = Random(0).sample(device_blocks(text), k=2)
    for start, end in blocks:
        with pytest.raises(ModelError, match="has no device"):
            complete(parse_program(text[:start] + text[end:]))
    return len(blocks)


@pytest.mark.broad
def test_minimal_forms_sample() -> None:
    """Minimal forms are enough, and no more."""
    check_many(SAMPLE, check_minimal_form)


@pytest.mark.slow
def test_minimal_forms_all() -> None:
    """The same for the plans of 5,000 programs."""
    check_many(ALL, check_minimal_form)
