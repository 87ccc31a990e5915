"""Regions of control flow: how the translations of If, Loop and Scan build core ``if`` and
``loop``.

In: a context, functions that translate a body. Out: value ids of results. Not done here: attributes
and operand order of ONNX's own ops (``ops/if_``, ``ops/loop``, ``ops/scan``).

Inside a region more is known than outside: its own values are forgotten when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from ingot_compiler.frontend.build.compose import binary_scalar, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.known_values import DeferredValue, KnownValues, as_known_values
from ingot_compiler.frontend.build.sequences import parts_of
from ingot_compiler.frontend.build.translation import Translation
from ingot_compiler.frontend.build.value_kinds import (
    ValueKind,
    all_remade,
    as_kind,
    joined,
    kind_of,
)
from ingot_compiler.frontend.build.value_kinds import input_types as value_types
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import ConstantSource, Graph
from ingot_compiler.ir.message import message
from ingot_compiler.ir.ops.if_ import unified
from ingot_compiler.ir.ops.loop import loop_results
from ingot_compiler.ir.rules.region_rules import hole_count, output_types
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

Fill = Callable[[Sequence[int]], Sequence[int]]
"""Translates a region: value ids of its inputs -> those of its outputs, in the builder of the
context."""

_Learnt = tuple[
    GraphBuilder,
    dict[int, KnownValues | DeferredValue],
    dict[tuple[int, int], Dim],
    dict[int, ConstantSource],
]
"""What a translation has built and learnt."""


@dataclass(frozen=True, slots=True)
class DivergentNode:
    """A node whose results have one type where ``condition`` holds and another one where it does
    not. ``otherwise`` stands for both where ``is_default`` and nothing tells which one is right."""

    condition: int
    then: Fill
    otherwise: Fill
    is_default: bool = False


class DivergentTypes(Unsupported):
    """The branches of an If give results that one value cannot stand for."""


_CONTROL_TYPES = (TensorType("i64", ()), TensorType("bool", ()))


class OpenRegion:
    """A region under construction, which sees what the context's builder has now; what is learnt
    inside is forgotten outside."""

    def __init__(self, context: OpContext, inputs: Sequence[TensorType]) -> None:
        self._translation = context.translation
        self._inside = (
            self._translation.builder.region(inputs),
            dict(self._translation.known_values),
            dict(self._translation.dims_read),
            dict(self._translation.stored),
        )

    @contextmanager
    def entered(self) -> Generator[GraphBuilder]:
        """Let the context build inside."""
        translation = self._translation
        outside = _learnt(translation)
        _learn(translation, self._inside)
        try:
            yield translation.builder
        finally:
            _learn(translation, outside)

    def types_of(self, values: Sequence[int]) -> list[TensorType]:
        """The types of values that it sees."""
        return [self._inside[0].types[value] for value in values]

    def finish(self, outputs: Sequence[int]) -> Graph:
        """The region."""
        if any(output < 0 for output in outputs):
            raise Unsupported("a sequence or an optional that a run decides")
        return self._inside[0].finish(outputs)


def _learnt(translation: Translation) -> _Learnt:
    return (
        translation.builder, translation.known_values, translation.dims_read, translation.stored,
    )  # fmt: skip


def _learn(translation: Translation, learnt: _Learnt) -> None:
    translation.builder, translation.known_values, translation.dims_read, translation.stored = (
        learnt
    )


def build_region(context: OpContext, inputs: Sequence[TensorType], fill: Fill) -> Graph:
    """The region that ``fill`` makes; what it has learnt is forgotten."""
    region = OpenRegion(context, inputs)
    with region.entered() as builder:
        outputs = fill(builder.inputs)
    return region.finish(outputs)


def build_if(context: OpContext, condition: int, then: Fill, otherwise: Fill) -> tuple[int, ...]:
    """The results of one branch: of the only one that is translated when the condition is known.

    Raises:
        DivergentTypes: a result has another element type or rank in one branch than in the other.
    """
    condition = reshape(context, condition, ())
    known = context.known_ints(condition)
    if known is not None:
        return tuple((then if known[0] else otherwise)(()))
    opened = [OpenRegion(context, ()) for _ in range(2)]
    made: list[Sequence[int]] = []
    for region, fill in zip(opened, (then, otherwise), strict=True):
        with region.entered():
            made.append(fill(()))
    if any(value < 0 for values in made for value in values):
        return _join_values(context, condition, opened, made)
    regions = [region.finish(values) for region, values in zip(opened, made, strict=True)]
    for one, other in zip(*map(output_types, regions), strict=False):
        context.translation.same_names.compare_shapes(one.shape, other.shape)
        if not alike(one, other):
            raise DivergentTypes(message("branches of different types, ", one, " and ", other))
    return join_branches(context, condition, regions)


def _join_values(
    context: OpContext,
    condition: int,
    opened: Sequence[OpenRegion],
    made: Sequence[Sequence[int]],
) -> tuple[int, ...]:
    """The results of two branches, some of which are no tensors."""
    kinds: list[list[ValueKind]] = []
    for region, values in zip(opened, made, strict=True):
        with region.entered():
            kinds.append([kind_of(context, value) for value in values])
    both = [joined(*pair) for pair in zip(*kinds, strict=True)]
    regions: list[Graph] = []
    for region, values in zip(opened, made, strict=True):
        with region.entered():
            parts = as_parts(context, both, values)
        regions.append(region.finish(parts))
    return tuple(all_remade(context, both, join_branches(context, condition, regions)))


def as_parts(context: OpContext, kinds: Sequence[ValueKind], values: Sequence[int]) -> list[int]:
    """The tensors of values, as those of kinds that they were joined into."""
    pairs = zip(kinds, values, strict=True)
    seen = [as_kind(context, value, kind) for kind, value in pairs]
    return [part for value in seen for part in parts_of(context, value)]


def build_value_loop(
    context: OpContext,
    limit: tuple[int | None, Dim | None],
    condition: tuple[int | None, bool | None],
    initial: Sequence[int],
    fill: Fill,
) -> tuple[int, ...]:
    """``build_loop`` for carried values some of which are no tensors."""
    kinds = _carried_kinds(context, initial, fill)

    def of_parts(inputs: Sequence[int]) -> Sequence[int]:
        again, *values = fill((*inputs[:2], *all_remade(context, kinds, inputs[2:])))
        scanned = values[len(kinds) :]
        return (again, *as_parts(context, kinds, values[: len(kinds)]), *scanned)

    parts = as_parts(context, kinds, initial)
    results = build_loop(context, limit, condition, parts, of_parts)
    carried = all_remade(context, kinds, results[: len(parts)])
    return (*carried, *results[len(parts) :])


def _carried_kinds(context: OpContext, initial: Sequence[int], fill: Fill) -> list[ValueKind]:
    """The kinds of carried values that hold before and after each iteration."""
    kinds = [kind_of(context, value) for value in initial]
    while True:
        after = _kinds_after(context, kinds, fill)
        wider = [joined(*pair) for pair in zip(kinds, after, strict=True)]
        if wider == kinds:
            return kinds
        kinds = wider


def _kinds_after(context: OpContext, kinds: Sequence[ValueKind], fill: Fill) -> list[ValueKind]:
    """The kinds of carried values after an iteration, which is translated for nothing else."""
    types = [type_ for kind in kinds for type_ in value_types(context, kind)]
    region = OpenRegion(context, (*_CONTROL_TYPES, *types))
    with region.entered() as builder:
        count, condition, *parts = builder.inputs
        _, *values = fill((count, condition, *all_remade(context, kinds, parts)))
        return [kind_of(context, value) for value in values[: len(kinds)]]


def alike(one: TensorType, other: TensorType) -> bool:
    """Whether one result of an ``if`` can stand for both."""
    return one.dtype == other.dtype and one.rank == other.rank


def join_branches(context: OpContext, condition: int, regions: Sequence[Graph]) -> tuple[int, ...]:
    """The results of an ``if`` of two regions whose outputs are alike."""
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
    trip_count = _scalar_or(context, limit[0], "i64", (1 << 63) - 1)
    entered = _scalar_or(context, condition[0], "bool", 1)
    types = [context.type_of(value) for value in initial]
    body, goes_on = _widened_body(context, types, fill)
    counted = condition[1] and goes_on  # the trip count alone decides
    iterations = 0 if condition[1] is False else limit[1] if counted else None
    if counted and limit[0] is None:
        raise Unsupported("a loop without an end")
    if counted and iterations is None:
        # The count is read before, so that results have their sizes at once.
        (iterations,) = context.read_dims(binary_scalar(context, "max", trip_count, 0))
        body, _ = _widened_body(context, types, fill)
    names: tuple[str, ...] = ()
    if iterations is None:
        names = context.fresh_symbols(1)
        iterations = symbol(names[0])
    operands = (trip_count, entered, *initial)
    types = [context.type_of(value) for value in operands]
    names += context.fresh_symbols(hole_count(loop_results(types, iterations, body)))
    return context.add_regions("loop", operands, [body], iterations=iterations, symbols=names)


def _scalar_or(context: OpContext, value: int | None, dtype: DType, default: int) -> int:
    """An operand of one element as rank 0; ``default`` when it is absent."""
    return context.scalar(dtype, default) if value is None else reshape(context, value, ())


def _widened_body(
    context: OpContext, types: Sequence[TensorType], fill: Fill
) -> tuple[Graph, bool]:
    """The body over types that hold in every iteration, and whether its condition is always
    true."""
    try:
        return _widened_until_stable(context, list(types), fill)
    except ModelError:
        # Sizes of the first iteration may be impossible ones for the body's later iterations: try
        # without any.
        loose = [
            TensorType(
                tensor_type.dtype, tuple(map(symbol, context.fresh_symbols(tensor_type.rank)))
            )
            for tensor_type in types
        ]
        if all(tensor_type.rank == 0 for tensor_type in types):
            raise
        return _body(context, loose, fill)


def _widened_until_stable(
    context: OpContext, types: list[TensorType], fill: Fill
) -> tuple[Graph, bool]:
    """The body, made again with the sizes as symbols that it changes, until it changes none."""
    own = set[Dim]()
    while True:
        body, goes_on = _body(context, types, fill)
        after = output_types(body)[1:]
        widened = [_widen(context, *pair, own) for pair in zip(types, after, strict=False)]
        if widened == types:
            return body, goes_on
        types = widened


def _widen(context: OpContext, before: TensorType, after: TensorType, own: set[Dim]) -> TensorType:
    if before.dtype != after.dtype or before.rank != after.rank:
        raise Unsupported(message("a carried value that changes from ", before, " to ", after))
    context.translation.same_names.compare_shapes(before.shape, after.shape)
    shape = list(before.shape)
    for axis, (here, next_) in enumerate(zip(before.shape, after.shape, strict=True)):
        # A size that is a symbol of this loop already stands for whatever the iteration before has
        # made.
        if here != next_ and here not in own:
            shape[axis] = symbol(*context.fresh_symbols(1))
            own.add(shape[axis])
    return TensorType(before.dtype, tuple(shape))


def _body(context: OpContext, types: Sequence[TensorType], fill: Fill) -> tuple[Graph, bool]:
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

    return build_region(context, (*_CONTROL_TYPES, *types), enter), goes_on[0]
