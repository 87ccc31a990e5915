"""ONNX Loop: a graph over and over, values carried from one iteration to the next, others
collected.

In: a trip count and a condition (either may be absent), carried values, a graph. Out: core
``loop``; where a sequence is carried, the nodes of every iteration. Not done here: sequences in a
loop whose iterations only a run counts (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import concat, unsqueeze
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.control import build_loop
from ingot_compiler.frontend.onnx_node import RegionBody
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ranges import at_least

_ITERATIONS_MAX = 1024  # of a loop over sequences, which becomes as many copies of its body


def _translate(context: OpContext) -> Sequence[int]:
    body, initial = (
        context.body("body"),
        [context.operand(at) for at in range(2, len(context.operands))],
    )
    if body.input_count != len(initial) + 2 or body.output_count < len(initial) + 1:
        expected = f"a body of {len(initial) + 2} inputs and at least {len(initial) + 1} outputs"
        raise OpTypeError(expected, f"{body.input_count} and {body.output_count}")
    trip_count, condition = context.optional(0), context.optional(1)
    if any(value < 0 for value in initial):
        return _unrolled(context, body, initial)
    counts = None if trip_count is None else context.dims(trip_count)
    entered = (1,) if condition is None else context.known_ints(condition)
    return build_loop(
        context,
        (trip_count, None if counts is None else at_least(counts[0], 0)),
        (condition, None if entered is None else bool(entered[0])),
        initial,
        body.translate,
    )


def _unrolled(context: OpContext, body: RegionBody, carried: Sequence[int]) -> Sequence[int]:
    """Carried values at the end, then stacked scan outputs, of a loop that the translation runs."""
    limit, entered = _known_scalar(context, context.optional(0)), context.optional(1)
    goes_on = entered is None or bool(_known_scalar(context, entered))
    count, rows = len(carried), list[Sequence[int]]()
    while goes_on and (limit is None or len(rows) < limit):
        if len(rows) == _ITERATIONS_MAX:
            raise Unsupported(f"a loop over sequences of more than {_ITERATIONS_MAX} iterations")
        number = context.scalar("i64", len(rows))
        again, *results = body.translate((number, context.scalar("bool", 1), *carried))
        carried = results[:count]
        rows.append(results[count:])
        goes_on = bool(_known_scalar(context, again))
    return (*carried, *(_stacked(context, column) for column in zip(*rows, strict=True)))


def _known_scalar(context: OpContext, value: int | None) -> int | None:
    if value is None:
        return None
    known = context.known_ints(value)
    if known is None:
        raise Unsupported("sequences in a loop whose iterations only a run counts")
    return known[0]


def _stacked(context: OpContext, values: Sequence[int]) -> int:
    return concat(context, [unsqueeze(context, value, (0,)) for value in values], 0)


OP = OnnxOp("Loop", _translate)
