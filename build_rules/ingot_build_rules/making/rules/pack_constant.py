"""Rule ``pack_constant``: the bytes of a constant as kernels read it, or of several small ones.

In: expressions over constants (folding and layout in one), the constants. Out: dense bytes, one
constant behind the other. Not done here: evaluation itself
(``ingot_compiler.lowering.constants.evaluate_constant``), the place in the file (``weight_layout``), which
constants are packed together (``constant_batches``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph


@dataclass(frozen=True, slots=True)
class PackInputs:
    """``expressions``: graphs without inputs and with one output; ``leaves``: (number in them,
    bytes) of each constant; ``size_bytes``: of the result."""

    expressions: Artifact[tuple[Graph, ...]]
    leaves: tuple[tuple[str, Artifact[memoryview]], ...]
    size_bytes: int


def _compute(context: RuleContext, inputs: PackInputs) -> Artifact[memoryview]:
    from ingot_compiler.lowering.constants.evaluate_constant import evaluate

    leaves = dict(inputs.leaves)
    packed = [
        evaluate(expression, lambda constant: leaves[constant].value())
        for expression in inputs.expressions.value()
    ]
    content = packed[0] if len(packed) == 1 else memoryview(b"".join(packed))
    if content.nbytes != inputs.size_bytes:
        raise InternalError(
            "packed constants have the wrong size",
            where=f"constants {inputs.expressions.digest[:16]}",
            why=f"expected {inputs.size_bytes} bytes, got {content.nbytes}",
        )
    return context.keep_bytes(content)


PACK_CONSTANT = Rule("pack_constant", 2, ("expressions", "leaves"), _compute)
