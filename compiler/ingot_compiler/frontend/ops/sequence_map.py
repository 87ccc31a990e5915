"""ONNX SequenceMap: a graph over each element of sequences.

In: a sequence, more sequences as long or tensors, a graph. Out: sequences; the graph is translated
once for each element where the length is known, else it is the body of a loop. Not done here: the
nodes of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_value_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.frontend.build.sequences import (
    add_value,
    is_sequence,
    make_sequence,
    sequence_of,
)
from ingot_compiler.frontend.build.values import KnownSequence, RaggedSequence
from ingot_compiler.frontend.families.sequences.ragged import element_at, inserted, length_of, pack
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    body, operands = context.body("body"), context.given()
    require(
        body.input_count == len(operands), f"a body of {len(operands)} inputs", body.input_count
    )
    columns = [
        sequence_of(context, operand) if is_sequence(context, operand) else operand
        for operand in operands
    ]
    sequence_of(context, operands[0])
    known = [column.items for column in columns if isinstance(column, KnownSequence)]
    if any(isinstance(column, RaggedSequence) for column in columns):
        packed = [pack(context, it) if isinstance(it, KnownSequence) else it for it in columns]
        return _mapped(context, body, packed)
    count = len(known[0])
    require(all(len(items) == count for items in known), f"{count} elements", len(known[-1]))
    rows = [
        body.translate([it.items[at] if isinstance(it, KnownSequence) else it for it in columns])  # type: ignore[misc]  # no RaggedSequence is among them
        for at in range(count)
    ]
    return [
        make_sequence(context, [row[position] for row in rows])
        for position in range(body.output_count)
    ]


def _mapped(
    context: OpContext, body: RegionBody, columns: Sequence[RaggedSequence | int]
) -> Sequence[int]:
    """The results of a loop over all elements."""
    lengths = [
        length_of(context, column) for column in columns if isinstance(column, RaggedSequence)
    ]
    for length in lengths[1:]:
        require_dim(context, length - lengths[0], "sequences of one length", length)

    def fill(inputs: Sequence[int]) -> Sequence[int]:
        number, condition, *made = inputs
        row = [
            element_at(context, column, number) if isinstance(column, RaggedSequence) else column
            for column in columns
        ]
        found = body.translate(row)
        return condition, *(_longer(context, *pair) for pair in zip(made, found, strict=True))

    empty = [make_sequence(context, ()) for _ in range(body.output_count)]
    count = size_scalar(context, lengths[0])
    return build_value_loop(context, (count, lengths[0]), (None, True), empty, fill)


def _longer(context: OpContext, sequence: int, value: int) -> int:
    """A sequence with a value behind."""
    found = sequence_of(context, sequence)
    if isinstance(found, KnownSequence):
        return make_sequence(context, (*found.items, value))
    return add_value(context, inserted(context, found, value, None))


OPS = (OnnxOp("SequenceMap", _translate),)
