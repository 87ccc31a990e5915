"""Programs as texts, planned and compared: shared by the tests of the planner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret_program import interpret_plan, interpret_program
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionLiteral,
    OnDevice,
    Projection,
)
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.verify_plan import find_plan_problems
from ingot_compiler.programs.walk import rebuild

DEVICES = """
device "H" id 0 type "host"
device "C" id 1 type "cpu" target "cpu:x86-64-v3"
device "G" id 0 type "cuda" target "cuda:sm_80" default
device "CA" id 1 type "cpu" target "cpu:x86-64-v3" scope "scopeA"
device "CB" id 1 type "cpu" target "cpu:x86-64-v3" scope "scopeB"
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


def weight_bytes(_number: str) -> memoryview:
    """The same weights for every constant of 5 x 7."""
    return memoryview(np.arange(35, dtype=np.float32).tobytes())


def random_inputs(program: Program, seed: int = 0) -> list[Array]:
    """An array for each parameter of ``main``; sizes that are open are 5 and 7."""
    random = np.random.default_rng(seed)
    made: list[Array] = []
    for parameter in program.functions["main"].parameters:
        assert isinstance(parameter.type, TensorType)
        sizes = zip(parameter.type.shape, (5, 7), strict=False)
        shape = [size if isinstance(size, int) else known for size, known in sizes]
        dtype = STORAGE_DTYPES[parameter.type.dtype]
        made.append(
            random.integers(0, 2 if parameter.type.dtype == "bool" else 9, shape).astype(dtype)
        )
    return made


def check_same_results(program: Program, planned_program: Program, seed: int = 0) -> None:
    """A plan on devices with separate memories gives what the program gives."""
    assert list(find_plan_problems(planned_program)) == []
    inputs = random_inputs(program, seed)
    expected = interpret_program(program, inputs, weight_bytes)
    got = interpret_plan(planned_program, inputs, weight_bytes)
    assert len(got) == len(expected) > 0
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def erased(program: Program) -> str:
    """The program without devices, annotations and copies, the same for equal ones."""

    def rule(expression: Expression, operands: Sequence[Expression]) -> Expression:
        if isinstance(expression, OnDevice | DeviceCopy):
            return operands[0]
        if isinstance(expression, Projection):  # projection before copy
            return replace(expression, value=operands[0])
        return expression.with_operands(operands) if operands else expression

    functions: dict[str, FunctionLiteral] = {}
    for name, function in program.functions.items():
        made = rebuild(function, rule)
        assert isinstance(made, FunctionLiteral)
        functions[name] = made
    bare = replace(program, functions=functions, kernels={})
    return re.sub(r' ?\{device="[^"]*"\}', "", canonical(bare))
