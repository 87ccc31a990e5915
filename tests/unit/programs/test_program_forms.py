"""The minimal form of a plan has the devices of parameters, results, variables and copies; it and
the complete form give each other."""

from __future__ import annotations

import re

import pytest
from tests.harness.program_harness import canonical, program_text, read
from tests.unit.programs.test_planner_cases import CASES
from tests.unit.programs.test_planner_more_cases import POSITIVE

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.programs.minimal_form import complete, minimise
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program

ALL = {**CASES, **POSITIVE}


@pytest.mark.parametrize("name", ALL)
def test_forms_give_each_other(name: str) -> None:
    """Minimal and complete form, read back from their texts, give each other, and a complete form
    is its own."""
    planned = plan(read(ALL[name][0])).program
    small = minimise(planned)
    again = parse_program(print_program(small))
    assert canonical(again) == canonical(small)
    assert canonical(complete(again)) == canonical(complete(planned)) == canonical(planned)
    assert canonical(minimise(complete(again))) == canonical(small)
    assert canonical(plan(small).program) == canonical(plan(again).program)


def test_annotations_go() -> None:
    """No fixed annotation is left where its device follows from something else."""
    texts = [canonical(minimise(plan(read(text)).program)) for text, _ in ALL.values()]
    assert sum("fixed(" in text for text in texts) == 0
    assert sum("let %" in text and '{device="' in text for text in texts) > 10


@pytest.mark.parametrize("name", ALL)
def test_a_missing_device_is_named(name: str) -> None:
    """Without any one of its devices a minimal form is refused by the name of what lacks it."""
    text = print_program(minimise(plan(read(ALL[name][0])).program))
    for start, end in device_blocks(text):
        with pytest.raises(ModelError, match="has no device") as found:
            complete(parse_program(text[:start] + text[end:]))
        variable = re.findall(r"%\w+$", text[:start])
        assert (variable[0] if variable else "the result of fn") in found.value.what
        assert "line " in found.value.where


def device_blocks(text: str) -> list[tuple[int, int]]:
    """Where the devices of parameters, results and variables stand in a text."""
    blocks = [
        found.span() for found in re.finditer(r'(?<=[%)\w]) \{device="[^"]*"\}(?= ->|:| =)', text)
    ]
    assert len(blocks) > 1
    return blocks


def test_devices_of_let() -> None:
    """A variable of ``let`` may be declared; the planner takes it as asked for."""
    made = plan(read("def @main(%x: T) -> T { let %y@C = neg(%x); neg(on_device(%y, C)) }")).program
    assert 'let %y {device="C"} = fixed(neg(%x), "C");' in print_program(made)
    with pytest.raises(ModelError, match="two devices"):
        plan(read("def @main(%x: T) -> T { let %y@C = fixed(neg(%x), G); %y }"))
    assert "@C" not in program_text("%y@C")
