"""The memory of a call: as a formula over the sizes of inputs, and at sizes that the user gives.

In: a bundle, sizes of inputs by name. Out: ``CallMemory`` of each variant. Not done here: running,
the memory of outputs, printing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ingot_artifacts.inspect.describe import opened, variant_program
from ingot_build_rules.tools.view.evaluate_call import EvaluatedCall, evaluate_call
from ingot_build_rules.tools.view.workspace_formula import workspace_formulas
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.debug import named_message
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.source import Source, read_plan
from ingot_runtime.lazy_dataclass import dataclass

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
    """Return the memory of a call of each variant, by target; ``shapes``: of every input, or of
    none.

    Raises:
        BundleError: not a valid bundle. UserError: sizes that `main` refuses.
    """
    with opened(path, digest) as source:
        plan = read_plan(source)
        chosen = [shapes[tensor.name] for tensor in plan.inputs] if shapes else None
        return {
            variant.target: _of_variant(source, plan, index, chosen)
            for index, variant in enumerate(plan.variants)
        }


def _of_variant(
    source: Source, plan: BundlePlan, index: int, shapes: Sequence[tuple[int, ...]] | None
) -> CallMemory:
    program = variant_program(source, plan, index)
    formulas = workspace_formulas(program, plan.inputs, plan.symbols, len(plan.devices))
    if shapes is None:
        return CallMemory(formulas, None)
    call = evaluate_call(program, shapes, len(plan.devices))
    if call.problem:
        why = named_message(source, call.problem)
        raise UserError("a call of these sizes is refused", source.name, why, "give other sizes")
    return CallMemory(formulas, call)
