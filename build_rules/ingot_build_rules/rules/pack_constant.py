"""Rule ``pack_constant``: the bytes of one constant as kernels read it.

In: an expression over constants (folding and layout in one), the constants. Out: dense bytes. Not
done here: evaluation itself (``ingot_compiler.lowering.constant_expression``), the place in the
file (``weight_layout``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph


@dataclass(frozen=True, slots=True)
class PackInputs:
    """``expression``: a graph without inputs and with one output; ``leaves``: (number in it, bytes)
    of each constant."""

    expression: Artifact[Graph]
    leaves: tuple[tuple[str, Artifact[memoryview]], ...]


def _compute(context: RuleContext, inputs: PackInputs) -> Artifact[memoryview]:
    from ingot_compiler.lowering.evaluate_constant import evaluate

    leaves = dict(inputs.leaves)
    return context.keep_bytes(
        evaluate(inputs.expression.value(), lambda constant: leaves[constant].value())
    )


PACK_CONSTANT = Rule("pack_constant", 1, ("expression", "leaves"), _compute)
