"""Several versions of one model: a general one for any size, and those for the sizes that the user
named.

In: the fused graph of what there is, that of another version. Out: one fused graph that holds both;
``main`` chooses by the sizes of the call. Not done here: making either. Equal constants share a
buffer; inputs, outputs and types are the general ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.message import joined, message
from ingot_compiler.ir.sizes.profile import Profile, named_profile
from ingot_compiler.lowering.groups.fused import (
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
)


def append_specialisation(
    general: FusedGraph, specialisation: FusedGraph, profile: Profile
) -> FusedGraph:
    """Append a version for the sizes of ``profile`` to ``general``, which may have some already."""
    buffers = list(general.buffers)
    constants = list(general.constants)
    known = {
        (spec.device, constants[spec.index]): number
        for number, spec in enumerate(buffers)
        if spec.kind == "constant"
    }
    numbers: list[int] = []
    for spec in specialisation.buffers:
        if spec.kind == "constant":
            constant = (spec.device, specialisation.constants[spec.index])
            if constant in known:
                numbers.append(known[constant])
                continue
            known[constant] = len(buffers)
            constants.append(constant[1])
            buffers.append(replace(spec, index=len(constants) - 1))
        else:
            buffers.append(spec)
        numbers.append(len(buffers) - 1)
    return replace(
        general,
        buffers=tuple(buffers),
        steps=(*general.steps, *_moved_steps(specialisation.steps, numbers)),
        constants=tuple(constants),
        specialisations=(
            *general.specialisations,
            Specialisation(len(general.steps), profile),
        ),
    )


def refuse_others(general: FusedGraph, profiles: Sequence[Profile]) -> FusedGraph:
    """The general version where there is none: it refuses every call, and names ``profiles``."""
    wanted = joined(" or ", map(named_profile, profiles))
    what = message("the bundle has no version for these sizes: expected ", wanted)
    return replace(general, buffers=(), steps=(Requirement(1, what),), constants=())


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
