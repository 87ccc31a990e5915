"""Two ways to run one model: a general one for any size, and one for the sizes that the user named.

In: the fused graphs of both. Out: one fused graph that holds both; ``main`` chooses by the sizes of
the call.
Not done here: making either. Equal constants share a buffer; inputs, outputs and types are the
general ones.
"""

from __future__ import annotations

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
    Requirement,
    Specialisation,
    Step,
    SymbolRead,
    SymbolSet,
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
    steps = tuple(_moved(step, numbers) for step in specialisation.steps)
    return FusedGraph(
        general.inputs,
        general.outputs,
        tuple(buffers),
        (*general.steps, *steps),
        tuple(constants),
        Specialisation(len(general.steps), sizes),
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


def _moved(step: Step, numbers: list[int]) -> Step:
    if isinstance(step, Requirement | SymbolSet):
        return step
    if isinstance(step, SymbolRead):
        return replace(step, buffer=numbers[step.buffer])
    if isinstance(step, Copy):
        return replace(step, operand=numbers[step.operand], result=numbers[step.result])
    if isinstance(step, Grow):
        return replace(
            step, buffer=numbers[step.buffer], spare=-1 if step.spare < 0 else numbers[step.spare]
        )
    if isinstance(step, IfStep):
        parts = (
            tuple(_moved(inner, numbers) for inner in part) for part in (step.then, step.otherwise)
        )
        return IfStep(step.condition, *parts)
    if isinstance(step, LoopStep):
        body = tuple(_moved(inner, numbers) for inner in step.body)
        return replace(step, body=body, held=tuple(numbers[buffer] for buffer in step.held))

    def operand(item: Operand) -> Operand:
        return replace(item, buffer=numbers[item.buffer])

    assert isinstance(step, Group)
    return replace(
        step, operands=tuple(map(operand, step.operands)), results=tuple(map(operand, step.results))
    )
