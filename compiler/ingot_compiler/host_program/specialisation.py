"""Two ways to run one model: a general one for any size, and one for the sizes that the user named.

In: the fused graphs of both. Out: one fused graph that holds both; ``main`` chooses by the sizes of
the call. Not done here: making either. Equal constants share a buffer; inputs, outputs and types
are the general ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Graph
from ingot_compiler.lowering.fused import (
    BufferSpec,
    Copy,
    FusedGraph,
    Group,
    Grow,
    IfStep,
    LoopStep,
    Operand,
    Specialisation,
    Step,
    SymbolRead,
)


def append_specialisation(
    general: FusedGraph, specialisation: FusedGraph, sizes: tuple[tuple[str, int], ...]
) -> FusedGraph:
    """Append ``specialisation``, which holds when every symbol of ``sizes`` has its value."""
    buffers = list(general.buffers)
    constants = list(general.constants)
    numbers: list[int] = []
    for spec in specialisation.buffers:
        if spec.kind == "constant":
            numbers.append(_constant(spec, specialisation, buffers, constants))
        else:
            buffers.append(spec)
            numbers.append(len(buffers) - 1)
    return replace(
        general,
        buffers=tuple(buffers),
        steps=(*general.steps, *_moved_steps(specialisation.steps, numbers)),
        constants=tuple(constants),
        specialisation=Specialisation(len(general.steps), sizes),
    )


def _constant(
    spec: BufferSpec, specialisation: FusedGraph, buffers: list[BufferSpec], constants: list[Graph]
) -> int:
    expression = specialisation.constants[spec.index]
    for number, have in enumerate(buffers):
        if (
            have.kind == "constant"
            and have.device == spec.device
            and constants[have.index] == expression
        ):
            return number
    constants.append(expression)
    buffers.append(replace(spec, index=len(constants) - 1))
    return len(buffers) - 1


def _moved_steps(steps: Sequence[Step], numbers: Sequence[int]) -> tuple[Step, ...]:
    return tuple(_moved(step, numbers) for step in steps)


def _moved(step: Step, numbers: Sequence[int]) -> Step:
    """The step with the new numbers of its buffers."""
    match step:
        case Group():
            operands, results = (
                _moved_operands(part, numbers) for part in (step.operands, step.results)
            )
            return replace(step, operands=operands, results=results)
        case Copy():
            return replace(step, operand=numbers[step.operand], result=numbers[step.result])
        case SymbolRead():
            return replace(step, buffer=numbers[step.buffer])
        case Grow():
            spare = -1 if step.spare < 0 else numbers[step.spare]
            return replace(step, buffer=numbers[step.buffer], spare=spare)
        case IfStep():
            parts = (_moved_steps(part, numbers) for part in (step.then, step.otherwise))
            return IfStep(step.condition, *parts)
        case LoopStep():
            held = tuple(numbers[buffer] for buffer in step.held)
            return replace(step, body=_moved_steps(step.body, numbers), held=held)
        case _:
            return step


def _moved_operands(operands: Sequence[Operand], numbers: Sequence[int]) -> tuple[Operand, ...]:
    return tuple(replace(item, buffer=numbers[item.buffer]) for item in operands)
