"""ONNX's If and Loop; Scan is ``scan``.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import concat, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_if, build_loop, build_value_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum


def _if(context: OpContext) -> Sequence[int]:
    """The results of one of two graphs.

    In: a bool and two graphs without inputs, which see the tensors outside. Out: core ``if``, or
    the nodes of one graph where the condition is known.
    """
    then, otherwise = context.body("then_branch"), context.body("else_branch")
    return build_if(context, context.operand(0), then.translate, otherwise.translate)


_ITERATIONS_MAX = 1024  # of a loop over sequences, which becomes as many copies of its body


def _loop(context: OpContext) -> Sequence[int]:
    """A graph over and over, values carried from one iteration to the next, others collected.

    In: a trip count and a condition (either may be absent), carried values, a graph. Out: core
    ``loop``; where a sequence is carried and the iterations are known, the nodes of every one.
    """
    body, initial = (
        context.body("body"),
        [context.operand(at) for at in range(2, len(context.operands))],
    )
    if body.input_count != len(initial) + 2 or body.output_count < len(initial) + 1:
        expected = f"a body of {len(initial) + 2} inputs and at least {len(initial) + 1} outputs"
        raise OpTypeError(expected, f"{body.input_count} and {body.output_count}")
    trip_count, condition = context.optional(0), context.optional(1)
    has_values = any(value < 0 for value in initial)
    if has_values and _is_counted(context):
        unrolled = _unrolled(context, body, initial)
        if unrolled is not None:
            return unrolled
    counts = None if trip_count is None else context.dims(trip_count)
    entered = (1,) if condition is None else context.known_ints(condition)
    build = build_value_loop if has_values else build_loop
    return build(
        context,
        (trip_count, None if counts is None else maximum(counts[0], 0)),
        (condition, None if entered is None else bool(entered[0])),
        initial,
        body.translate,
    )


def _is_counted(context: OpContext) -> bool:
    """Whether the trip count, or else the condition, may be known for every iteration, and there
    are not too many."""
    trip_count, condition = context.optional(0), context.optional(1)
    limit = None if trip_count is None else context.known_ints(trip_count)
    if trip_count is not None and (limit is None or limit[0] > _ITERATIONS_MAX):
        return False
    return condition is None or context.known_ints(condition) is not None


def _unrolled(context: OpContext, body: RegionBody, carried: Sequence[int]) -> Sequence[int] | None:
    """Carried values at the end, then stacked scan outputs, of a loop that the translation runs;
    None where the body computes whether it goes on, or where it goes on for too long."""
    limit = _known_scalar(context, context.optional(0))
    goes_on: int | None = 1
    if context.optional(1) is not None:
        goes_on = _known_scalar(context, context.optional(1))
    count, rows = len(carried), list[Sequence[int]]()
    while goes_on and (limit is None or len(rows) < limit):
        number = context.scalar("i64", len(rows))
        again, *results = body.translate((number, context.scalar("bool", 1), *carried))
        carried = results[:count]
        rows.append(results[count:])
        goes_on = _known_scalar(context, again)
        if goes_on is None or len(rows) > _ITERATIONS_MAX:
            return None
    return (*carried, *(_stacked(context, column) for column in zip(*rows, strict=True)))


def _known_scalar(context: OpContext, value: int | None) -> int | None:
    known = None if value is None else context.known_ints(value)
    return None if known is None else known[0]


def _stacked(context: OpContext, values: Sequence[int]) -> int:
    return concat(context, [unsqueeze(context, value, (0,)) for value in values], 0)


OPS = (
    OnnxOp("If", _if),
    OnnxOp("Loop", _loop),
)
