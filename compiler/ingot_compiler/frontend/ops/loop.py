"""ONNX Loop: a graph over and over, values carried from one iteration to the next, others
collected.

In: a trip count and a condition (either may be absent), carried values, a graph. Out: core
``loop``. Not done here: sequences as carried values.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.control import build_loop
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ranges import at_least


def _translate(context: OpContext) -> Sequence[int]:
    body, initial = (
        context.body("body"),
        [context.operand(at) for at in range(2, len(context.operands))],
    )
    if body.input_count != len(initial) + 2 or body.output_count < len(initial) + 1:
        expected = f"a body of {len(initial) + 2} inputs and at least {len(initial) + 1} outputs"
        raise OpTypeError(expected, f"{body.input_count} and {body.output_count}")
    trip_count, condition = context.optional(0), context.optional(1)
    counts = None if trip_count is None else context.dims(trip_count)
    entered = (1,) if condition is None else context.known_ints(condition)
    return build_loop(
        context,
        (trip_count, None if counts is None else at_least(counts[0], 0)),
        (condition, None if entered is None else bool(entered[0])),
        initial,
        body.translate,
    )


OP = OnnxOp("Loop", _translate)
