"""ONNX SequenceMap: a graph over each element of sequences.

In: a sequence, more sequences as long or tensors, a graph. Out: sequences; the graph is translated
once for each element. Not done here: the nodes of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sequences import elements_of, is_sequence, make_sequence
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    body, operands = context.body("body"), context.given()
    count = len(elements_of(context, operands[0]))
    columns: list[Sequence[int]] = []
    for operand in operands:
        column = (
            elements_of(context, operand) if is_sequence(context, operand) else [operand] * count
        )
        require(len(column) == count, f"{count} elements", len(column))
        columns.append(column)
    require(body.input_count == len(columns), f"a body of {len(columns)} inputs", body.input_count)
    rows = [body.translate(row) for row in zip(*columns, strict=True)]
    return [
        make_sequence(context, [row[position] for row in rows])
        for position in range(body.output_count)
    ]


OP = OnnxOp("SequenceMap", _translate)
