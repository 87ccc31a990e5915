"""The memory of a call: as a formula over the sizes of inputs, and at sizes that the user gives.

In: a bundle, sizes of inputs by name. Out: ``CallMemory`` of each variant. Not done here: running,
the memory of outputs, printing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.compilation.suggest import suggest
from ingot_build_rules.view.evaluate_call import EvaluatedCall, evaluate_call
from ingot_build_rules.view.workspace_formula import workspace_formulas
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header as head
from ingot_runtime.format.debug import named_message
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.source import Source, read_plan, weights_sizes_bytes

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CallMemory:
    """``formulas``: bytes of the workspace of each device over the model's names of sizes, None
    where the data decide or the ways through the sizes differ; ``call``: at the sizes given, None
    where none are."""

    formulas: tuple[str | None, ...]
    call: EvaluatedCall | None


def call_memory(
    path: str | os.PathLike[str], shapes: Shapes, digest: str | None = None
) -> dict[str, CallMemory]:
    """Return the memory of a call of each variant, by target.

    Raises:
        BundleError: not a valid bundle. UserError: sizes that contradict the model, or that `main`
            refuses.
    """
    with opened(path, digest) as source:
        plan = read_plan(source)
        chosen = _all_shapes(plan, shapes, os.fspath(path)) if shapes else None
        return {
            variant.target: _of_variant(source, plan, index, chosen)
            for index, variant in enumerate(plan.variants)
        }


def _of_variant(
    source: Source, plan: BundlePlan, index: int, shapes: Sequence[tuple[int, ...]] | None
) -> CallMemory:
    sizes, section = weights_sizes_bytes(source, plan), source.section(head.PROGRAM, index)
    where = f"section program {index}"
    program = decode_program(section, plan, plan.variants[index], sizes, where)
    formulas = workspace_formulas(program, plan.inputs, plan.symbols, len(plan.devices))
    if shapes is None:
        return CallMemory(formulas, None)
    call = evaluate_call(program, shapes, len(plan.devices))
    if call.problem:
        why = named_message(source, call.problem)
        raise UserError("a call of these sizes is refused", source.name, why, "give other sizes")
    return CallMemory(formulas, call)


def _all_shapes(plan: BundlePlan, shapes: Shapes, bundle: str) -> list[tuple[int, ...]]:
    """The sizes of every input: those given, and what follows from them for the others."""
    known = {tensor.name: tensor for tensor in plan.inputs}
    for name in shapes:
        if name not in known:
            why = f"the inputs are {', '.join(known)}"
            raise UserError(f"no input {name!r}", bundle, why, suggest(name, list(known)))
    bound: dict[str, int] = {}
    for name, sizes in shapes.items():
        _bind(known[name], sizes, plan, bound)
    return [_sizes_of(tensor, plan, bound) for tensor in plan.inputs]


def _bind(
    tensor: TensorPlan, sizes: tuple[int, ...], plan: BundlePlan, bound: dict[str, int]
) -> None:
    """Note what the sizes of one input say of the model's open sizes."""
    expected = tensor.shape(plan.symbols)
    fits = len(sizes) == len(expected) and all(
        size == (bound.setdefault(dim, size) if isinstance(dim, str) else dim)
        for dim, size in zip(expected, sizes, strict=True)
    )
    if not fits:
        wanted = ", ".join(f"{dim} = {bound[dim]}" for dim in expected if dim in bound)
        given = f" with {wanted}" if wanted else ""
        why = f"expected {_text(expected)}{given}, got {_text(sizes)}"
        do = "give sizes that the model takes"
        raise UserError("sizes contradict the model", f"input {tensor.name!r}", why, do)


def _sizes_of(tensor: TensorPlan, plan: BundlePlan, bound: Mapping[str, int]) -> tuple[int, ...]:
    expected = tensor.shape(plan.symbols)
    open_names = [dim for dim in expected if isinstance(dim, str) and dim not in bound]
    if open_names:
        why = f"{', '.join(open_names)} of {_text(expected)} is open"
        do = f"add --shape {tensor.name}={'x'.join(str(bound.get(str(dim), dim)) for dim in expected)}"
        raise UserError("sizes are missing", f"input {tensor.name!r}", why, do)
    return tuple(bound[dim] if isinstance(dim, str) else dim for dim in expected)


def _text(sizes: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
