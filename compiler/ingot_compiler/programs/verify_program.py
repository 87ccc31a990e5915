"""Checks a program.

In: a program. Out: problems, each of an expression. Not done here: places in a text
(``parse_program``), plans (``verify_plan``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.programs.infer_types import TypeProblem, infer_types
from ingot_compiler.programs.program import Program


def find_program_problems(program: Program) -> Iterator[TypeProblem]:
    """What does not hold, in the order of the text."""
    yield from infer_types(program).problems
