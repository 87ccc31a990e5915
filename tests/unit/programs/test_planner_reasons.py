"""The reasons of a plan: chains from what the user wrote to the value."""

from __future__ import annotations

from tests.harness.program_harness import read
from tests.unit.programs.test_planner_cases import CASES

from ingot_compiler.programs.expressions import Expression, OperatorCall, Variable
from ingot_compiler.programs.operators import is_source
from ingot_compiler.programs.planner.plan import Plan, plan
from ingot_compiler.programs.planner.plan_steps import plan_steps
from ingot_compiler.programs.planner.reasons import Reasons
from ingot_compiler.programs.walk import post_order, with_devices


def find(made: Plan, name: str) -> Expression:
    """The variable of that name in ``main``, or the first call of that operator."""
    for one in post_order([made.prepared.functions["main"]]):
        if isinstance(one, Variable) and one.name == name:
            return one
        if isinstance(one, OperatorCall) and one.operator == name:
            return one
    raise AssertionError(name)


def chain(made: Plan, name: str) -> list[str]:
    """The rules and expressions of the chain that leads to a value."""
    steps = Reasons(made).of(find(made, name)).place
    return [f"{step.rule} {step.expression}" for step in steps]


C = "VirtualDevice(device_type=cpu, virtual_device_id=1, target=cpu:x86-64-v3)"
G = "VirtualDevice(device_type=cuda, virtual_device_id=0, target=cuda:sm_80)"


def test_a_parameter_follows_an_annotation() -> None:
    """From the annotation to the call in it, from the call to its operand."""
    made = plan(read(CASES["02 left add on cpu"][0]))
    assert chain(made, "a") == [
        f"{C} is asked for by on_device(add(%a, %b))",
        "is annotated by on_device(add(%a, %b))",
        "is operand 0 of add(%a, %b)",
    ]


def test_what_nothing_asks_for_has_the_default() -> None:
    """A chain can begin at the default, which says of what."""
    made = plan(read(CASES["01 plain"][0]))
    assert chain(made, "a")[0] == f"{G} is the default device, for the result of fn(%a, %b, %c, %d)"
    assert chain(made, "a")[-1] == "is operand 0 of add(%a, %b)"


def test_a_chain_goes_through_functions() -> None:
    """A parameter of the caller follows an annotation in the function that it is passed to."""
    made = plan(read(CASES["27 global"][0]))
    assert chain(made, "x") == [
        f"{C} is asked for by on_device(%b)",
        "is annotated by on_device(%b)",
        "is argument 1 of @f(%y, %x)",
    ]


def test_sizes_are_read_by_the_host() -> None:
    """An operator that reads sizes says so."""
    made = plan(read(CASES["14 alloc storage"][0]))
    assert "is where the host reads operand 0 of" in chain(made, "size")[0]


def test_scopes_have_chains_of_their_own() -> None:
    """The scope of a parameter comes from a buffer, its place from its declaration."""
    made = plan(read(CASES["31 lowered"][0]))
    reason = Reasons(made).of(find(made, "x"))
    assert "is declared for" in reason.place[0].rule
    assert "is the scope of a buffer of the kernel in" in reason.scope[0].rule


def test_each_copy_has_two_reasons() -> None:
    """A copy of a value that no annotation is about says why it is here, and why it is wanted
    there."""
    made = plan(read(CASES["34 conflicted inputs"][0]))
    (copy,) = Reasons(made).copies()
    assert str(copy.use).startswith("is operand 0 of add(%b, %c) at line 8, column ")
    assert copy.value.place[0].rule.startswith(C)
    assert copy.reader.place[0].rule.startswith(G)
    assert copy.value.device != copy.reader.device


def test_every_decision_has_a_reason() -> None:
    """In all cases every expression has a chain, whose every step has a place in the text, and
    whose first step gives the device's type."""
    count = 0
    for text, _ in CASES.values():
        made = plan(read(text))
        reasons = Reasons(made)
        for expression in post_order(made.prepared.functions.values(), with_devices):
            if not is_source(expression):
                reason = reasons.of(expression)
                assert reason.place, expression
                assert reason.device.device_type in reason.place[0].rule
                assert all(step.span.line > 0 for step in reason.place)
                count += 1
    assert count > 300


def test_the_nearest_steps() -> None:
    """Of a chain what decides, and the last steps of it; the whole chain where it is short."""
    for text, _ in CASES.values():
        made = plan(read(text))
        reasons = Reasons(made)
        for expression in post_order(made.prepared.functions.values(), with_devices):
            whole = list(reasons.of(expression).place)
            assert reasons.nearest(expression, len(whole)) == (whole, False)
            if len(whole) > 2:
                assert reasons.nearest(expression, 1) == ([whole[0], whole[-1]], True)


def test_steps_by_place() -> None:
    """Long chains are cut, and take no longer than short ones: 2,000 calls in a row."""
    calls = "\n".join(f"  let %v{at + 1} = neg(%v{at});" for at in range(2_000))
    made = plan(read(f"def @main(%v0: T) -> T {{\n{calls}\n  on_device(%v2000, G)\n}}"))
    steps = plan_steps(made)
    assert len(steps) == 2_000
    assert max(map(len, steps.values())) == 10
    told = next(each for each in steps.values() if len(each) == 10)
    assert told[1] == "..."
