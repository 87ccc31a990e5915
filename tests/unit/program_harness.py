"""Programs as texts, planned and compared: shared by the tests of the planner."""

from __future__ import annotations

import re

from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program

DEVICES = """
device "H" id 0 type "cpu" target "x86-64-v2"
device "C" id 1 type "cpu" target "x86-64-v3"
device "G" id 0 type "cuda" target "cuda:sm_80" default
device "CA" id 1 type "cpu" target "x86-64-v3" scope "scopeA"
device "CB" id 1 type "cpu" target "x86-64-v3" scope "scopeB"
""".replace('"H"', '"host"')
"""The environment of the reference cases: a host, a CPU, a GPU that is the default."""


def program_text(text: str, devices: str = DEVICES) -> str:
    """A program with its table of devices: ``T`` is a tensor type, ``%x@C: T`` a parameter with a
    device, ``)@C ->`` a result with one, ``C`` in an annotation a device's name, H the host."""
    text = re.sub(r"\bT\b", "f32[5, 7]", text)
    text = re.sub(r"@(H|C[AB]?|G)\b", lambda found: f' {{device="{_name(found[1])}"}}', text)
    text = re.sub(r"(?<=[ >])(H|C[AB]?|G)(?=[ )]|$)", lambda found: f'"{_name(found[1])}"', text)
    return devices + text


def _name(word: str) -> str:
    return "host" if word == "H" else word


def read(text: str) -> Program:
    """The program of a short text."""
    return parse_program(program_text(text))


def canonical(program: Program) -> str:
    """A text that is equal for equal programs, without the table of devices."""
    lines = print_program(program, canonical=True).split("\n")
    return "\n".join(line for line in lines if not line.startswith("device "))


def planned(text: str) -> str:
    """The canonical text of the plan of a short text."""
    return canonical(plan(read(text)).program)


def check_plan(text: str, expected: str) -> None:
    """The plan of ``text`` is ``expected``, and so is the plan of that."""
    assert planned(text) == canonical(read(expected))
    assert planned(expected) == canonical(read(expected))
