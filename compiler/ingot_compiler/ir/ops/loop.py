"""``loop(trip_count, cond, carried...){iterations, symbols} {(iteration, cond, carried...) ->
(cond, carried..., scan...)}``.

In: an i64 and a bool of rank 0, values to carry. Out: the carried values at the end, then each scan
output's elements, one per iteration, stacked on a new first axis (ONNX Loop-11). Not done here:
execution (``interpret``).

``iterations`` is an expression that is known before: the region then runs exactly that often, and
conditions do not count. Or it is the first of ``symbols``: the region runs while the condition
holds and the iteration (from 0) is below ``trip_count``; the symbol is the number of iterations. A
carried value's size that changes is a symbol in the type of the region's input: it stands for the
size in the iteration, and a fresh one of ``symbols`` for that at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_dim, require_attributes
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.region_rules import (
    HOLE,
    HoledType,
    fill_holes,
    inner_symbols,
    output_types,
    own_symbols,
    symbol_names,
    visible_sizes,
)
from ingot_compiler.ir.types import TensorType

CONTROL = 2
"""Operands and region inputs before the carried values: trip count or iteration, and condition."""
_CONTROL_TYPES = (TensorType("i64", ()), TensorType("bool", ()))


def loop_results(
    types: Sequence[TensorType], iterations: Dim | None, body: Graph
) -> tuple[HoledType, ...]:
    """The results, with holes for sizes that only the run decides; ``iterations`` None is one.

    OpTypeError when operands, region inputs and region outputs do not fit together.
    """
    inputs = tuple(body.types[value] for value in body.inputs)
    require(len(inputs) == len(types), f"a region of {len(types)} inputs", len(inputs))
    _check_control(types, inputs, output_types(body)[0])
    carried, made = len(types) - CONTROL, output_types(body)[1:]
    require(len(made) >= carried, f"a region that returns {carried} carried values", len(made))
    results: list[HoledType] = []
    varying: set[str] = set()
    for outside, inside, after in zip(types[CONTROL:], inputs[CONTROL:], made, strict=False):
        _check_carried(outside, inside, after)
        varying |= set(own_symbols(inside.shape, outside.shape))
        axes = list(zip(outside.shape, inside.shape, after.shape, strict=True))
        kept = all(last == here for first, here, last in axes if first == here)
        require(kept, message("a carried value that keeps ", inside), after)
        results.append(
            (outside, tuple(first if first == here else HOLE for first, here, _ in axes))
        )
    hidden = inner_symbols(body) | varying
    results += [(kind, (iterations, *visible_sizes(kind.shape, hidden))) for kind in made[carried:]]
    return tuple(results)


def _check_control(
    types: Sequence[TensorType], inputs: Sequence[TensorType], condition: TensorType
) -> None:
    """The operands and region inputs before the carried values, and the region's first output."""
    for given, expected in (
        (types, "a trip count i64[] and a condition bool[]"),
        (inputs, "a region of iteration i64[] and condition bool[]"),
    ):
        require(tuple(given[:CONTROL]) == _CONTROL_TYPES, expected, _texts(given))
    require(condition == _CONTROL_TYPES[1], "a region that returns a condition bool[]", condition)


def _check_carried(outside: TensorType, inside: TensorType, after: TensorType) -> None:
    """A carried value keeps its element type and rank from before the loop to its end."""
    alike = len({(kind.dtype, kind.rank) for kind in (outside, inside, after)}) == 1
    expected = "a carried value of one element type and rank"
    require(alike, expected, message(outside, ", ", inside, ", ", after))


def counted_before(attributes: Attributes) -> bool:
    """Whether the number of iterations is known before the loop runs."""
    names = symbol_names(attributes)
    return not names or attribute_dim(attributes, "iterations") != symbol(names[0])


def _infer_regions(
    types: Sequence[TensorType], attributes: Attributes, regions: Sequence[Graph]
) -> tuple[TensorType, ...]:
    require_attributes(attributes, "iterations", "symbols")
    require(len(regions) == 1, "one region", len(regions))
    require(len(types) >= CONTROL, "a trip count and a condition", _texts(types))
    require(len(regions[0].outputs) >= 1, "a region that returns a condition", "nothing")
    names = symbol_names(attributes)
    rest = names if counted_before(attributes) else names[1:]
    return fill_holes(
        loop_results(types, attribute_dim(attributes, "iterations"), regions[0]), rest
    )


def _texts(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return Inferred(_infer_regions(types, attributes, ()))


def _reference(_operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return ()


OPS = (CoreOp("loop", _infer, _reference, infer_regions=_infer_regions),)
