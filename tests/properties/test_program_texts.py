"""Texts of programs with words exchanged: each is refused by name, or is a program that has a sound
plan, forms and a text of its own."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pytest
from tests.harness.program_harness import canonical, program_text
from tests.unit.programs.test_planner_cases import CASES
from tests.unit.programs.test_planner_more_cases import IMPROVED, POSITIVE
from tests.unit.programs.test_planner_obeys import OBEYED

from ingot_compiler.ir.errors import ModelError, UnsupportedError, UserError
from ingot_compiler.programs.lower_program import lower_program
from ingot_compiler.programs.minimal_form import complete, minimise
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.verify_plan import find_plan_problems

SAMPLE, ALL = 600, 20_000
TEXTS = [
    program_text(text)
    for cases in (CASES, POSITIVE, IMPROVED, OBEYED)
    for text, _ in cases.values()
]
WORD = re.compile(r'"[^"]*"|%?\w+|->|\S')


def exchanged(random: Random) -> str:
    """The text of a case with up to three words exchanged for words of their kind out of it and of
    another case, with a word less, or with two in each other's place."""
    words, others = (WORD.findall(random.choice(TEXTS)) for _ in range(2))
    for _ in range(random.randrange(1, 4)):
        one, other = random.randrange(len(words)), random.randrange(len(words))
        kind = random.randrange(8)
        if kind < 6:
            like = [word for word in words + others if kind_of(word) == kind_of(words[one])]
            words[one] = random.choice(like)
        elif kind == 6:
            words[one], words[other] = words[other], words[one]
        else:
            del words[one]
    return " ".join(words)


def kind_of(word: str) -> str:
    """What may stand in the place of a word."""
    return "name" if word.isidentifier() else "number" if word.isdecimal() else word[0]


def check_text(text: str) -> bool:
    """Whether it is a program that has a plan; any other error than a refusal is raised."""
    try:
        made = plan(parse_program(text)).program
    except (ModelError, UserError):
        return False
    assert list(find_plan_problems(made)) == []
    assert canonical(parse_program(print_program(made))) == canonical(made)
    assert canonical(complete(minimise(made))) == canonical(complete(made))
    with suppress(UnsupportedError):
        lower_program(made)
    return True


def check_texts(count: int) -> None:
    """So many texts, of which many are programs."""
    found = [check_text(exchanged(Random(seed))) for seed in range(count)]
    assert count // 20 < sum(found) < count // 2


def test_texts_sample() -> None:
    """A text with words exchanged is refused by name or planned."""
    check_texts(SAMPLE)


@pytest.mark.slow
def test_texts_all() -> None:
    """The same for 20,000 texts."""
    check_texts(ALL)
