"""Rule ``pack_constant``: the bytes of one constant as kernels read it.

In: an expression over constants (folding and layout in one). Out: dense bytes. Not done here: evaluation itself
(``ingot_compiler.lowering.constant_expression``), the place in the file (``weight_layout``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph
from ingot_compiler.lowering.constant_expression import evaluate


@dataclass(frozen=True, slots=True)
class PackInputs:
    """``expression``: a graph without inputs and with one output; ``read``: its leaves' bytes."""

    expression: Graph
    read: ConstantReader


def _compute(_: Context, inputs: PackInputs) -> memoryview:
    return evaluate(inputs.expression, inputs.read)


PACK_CONSTANT = Rule("pack_constant", 1, ("expression",), _compute, transient=True)
