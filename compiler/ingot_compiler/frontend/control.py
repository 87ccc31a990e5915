"""Regions of control flow: how the translations of If, Loop and Scan build core ``if`` and
``loop``.

In: a context, functions that translate a body. Out: value ids of results. Not done here: attributes
and operand order of ONNX's own ops (``ops/if_``, ``ops/loop``, ``ops/scan``).

Inside a region more is known than outside: its own values are forgotten when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.compose import binary_scalar, reshape
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.known_values import as_known_values
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import message
from ingot_compiler.ir.ops.if_ import unified
from ingot_compiler.ir.ops.loop import loop_results
from ingot_compiler.ir.region_rules import hole_count, output_types
from ingot_compiler.ir.types import TensorType

Fill = Callable[[Sequence[int]], Sequence[int]]
"""Translates a region: value ids of its inputs -> those of its outputs, in the builder of the
context."""

_CONTROL_TYPES = (TensorType("i64", ()), TensorType("bool", ()))


def build_region(context: OpContext, inputs: Sequence[TensorType], fill: Fill) -> Graph:
    """The region that ``fill`` makes; what it has learnt is forgotten."""
    translation = context.translation
    outside, known = (
        translation.builder,
        (translation.known_values, translation.dims_read, translation.stored),
    )
    translation.builder = outside.region(inputs)
    translation.known_values, translation.dims_read, translation.stored = (
        dict(known[0]),
        dict(known[1]),
        dict(known[2]),
    )
    try:
        return translation.builder.finish(fill(translation.builder.inputs))
    finally:
        translation.builder = outside
        translation.known_values, translation.dims_read, translation.stored = known


def build_if(context: OpContext, condition: int, then: Fill, otherwise: Fill) -> tuple[int, ...]:
    """The results of one branch: of the only one that is translated when the condition is known."""
    condition = reshape(context, condition, ())
    known = context.known_ints(condition)
    if known is not None:
        return tuple((then if known[0] else otherwise)(()))
    regions = [build_region(context, (), fill) for fill in (then, otherwise)]
    for one, other in zip(*map(output_types, regions), strict=False):
        if one.dtype != other.dtype or one.rank != other.rank:
            raise Unsupported(message("branches of different types, ", one, " and ", other))
    names = context.fresh_symbols(hole_count(unified(regions)))
    return context.add_regions("if", (condition,), regions, symbols=names)


def build_loop(
    context: OpContext,
    limit: tuple[int | None, Dim | None],
    condition: tuple[int | None, bool | None],
    initial: Sequence[int],
    fill: Fill,
) -> tuple[int, ...]:
    """Carried values at the end, then stacked scan outputs.

    ``limit``: the trip count (None: no limit) and its value if known; ``condition`` likewise;
    ``fill`` maps (iteration, condition, carried..) to (condition, carried.., scan..). A carried
    size that changes becomes a symbol.
    """
    # A region sees what is there before it: all operands are made first.
    trip_count = (
        context.scalar("i64", (1 << 63) - 1) if limit[0] is None else reshape(context, limit[0], ())
    )
    entered = (
        context.scalar("bool", 1) if condition[0] is None else reshape(context, condition[0], ())
    )
    operands = (trip_count, entered, *initial)
    kinds = [context.type_of(value) for value in initial]
    body, goes_on = _widened_body(context, kinds, fill)
    iterations = limit[1] if condition[1] and goes_on else None
    if condition[1] is False:
        iterations = 0
    elif condition[1] and goes_on and limit[0] is not None and limit[1] is None:
        # The trip count alone decides: it is read before, so that results have their sizes at once.
        (iterations,) = context.read_dims(binary_scalar(context, "max", trip_count, 0))
        body, _ = _widened_body(context, kinds, fill)
    if limit[0] is None and condition[1] and goes_on:
        raise Unsupported("a loop without an end")
    names: tuple[str, ...] = ()
    if iterations is None:
        names = context.fresh_symbols(1)
        iterations = symbol(names[0])
    holes = hole_count(
        loop_results([context.type_of(value) for value in operands], iterations, body)
    )
    names += context.fresh_symbols(holes)
    return context.add_regions("loop", operands, [body], iterations=iterations, symbols=names)


def _widened_body(
    context: OpContext, kinds: Sequence[TensorType], fill: Fill
) -> tuple[Graph, bool]:
    """The body over types that hold in every iteration, and whether its condition is always
    true."""
    try:
        wide, own = list(kinds), set[Dim]()
        while True:
            body, goes_on = _body(context, wide, fill)
            after = output_types(body)[1:]
            widened = [_widen(context, *pair, own) for pair in zip(wide, after, strict=False)]
            if widened == wide:
                return body, goes_on
            wide = widened
    except ModelError:
        # Sizes of the first iteration may be impossible ones for the body's later iterations: try
        # without any.
        loose = [
            TensorType(kind.dtype, tuple(map(symbol, context.fresh_symbols(kind.rank))))
            for kind in kinds
        ]
        if all(kind.rank == 0 for kind in kinds):
            raise
        return _body(context, loose, fill)


def _widen(context: OpContext, before: TensorType, after: TensorType, own: set[Dim]) -> TensorType:
    if before.dtype != after.dtype or before.rank != after.rank:
        raise Unsupported(message("a carried value that changes from ", before, " to ", after))
    shape = list(before.shape)
    for axis, (here, next_) in enumerate(zip(before.shape, after.shape, strict=True)):
        # A size that is a symbol of this loop already stands for whatever the iteration before has
        # made.
        if here != next_ and here not in own:
            shape[axis] = symbol(*context.fresh_symbols(1))
            own.add(shape[axis])
    return TensorType(before.dtype, tuple(shape))


def _body(context: OpContext, kinds: Sequence[TensorType], fill: Fill) -> tuple[Graph, bool]:
    goes_on: list[bool] = []

    def enter(inputs: Sequence[int]) -> Sequence[int]:
        known_values = context.translation.known_values
        known_values[inputs[1]] = as_known_values(
            [1], ()
        )  # an iteration runs only while the condition holds
        (count,) = context.read_dims(inputs[0])
        known_values[inputs[0]] = as_known_values([count], ())
        condition, *made = fill(inputs)
        condition = reshape(context, condition, ())
        goes_on.append(context.known_ints(condition) == (1,))
        return condition, *made

    return build_region(context, (*_CONTROL_TYPES, *kinds), enter), goes_on[0]
