"""Rewrites annotations before constraints are collected, so that copies are small and stand where
kernels begin.

In: a program. Out: one that means the same. Not done here: devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.placement.virtual_device import UNCONSTRAINED
from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    KernelCall,
    OnDevice,
    Projection,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import keep, rebuild


def prepare(program: Program) -> Program:
    """Project items before they are copied, and allow copies around calls of kernels."""
    functions = {name: _prepared(function) for name, function in program.functions.items()}
    return replace(program, functions=functions)


def _prepared(function: FunctionLiteral) -> FunctionLiteral:
    made = rebuild(function, _rule)
    assert isinstance(made, FunctionLiteral)
    return made


def _rule(expression: Expression, operands: Sequence[Expression]) -> Expression:
    if isinstance(expression, Projection):
        value = operands[0]
        if isinstance(value, OnDevice) and value.is_normal:
            return replace(value, body=replace(expression, value=value))
    if isinstance(expression, KernelCall):
        call = replace(expression, arguments=tuple(map(_free, operands)))
        return _free(call)
    return keep(expression, operands)


def _free(expression: Expression) -> Expression:
    if isinstance(expression, OnDevice):
        return expression
    return OnDevice(expression, UNCONSTRAINED, constrain_body=False, span=expression.span)
