"""``if(cond){symbols} {then} {else}``: the results of one of two regions (ONNX If-11).

In: a bool of rank 0; two regions without inputs whose outputs agree in element types and ranks.
Out: those; a size that differs between the regions is a fresh symbol of ``symbols``, bound when the
op has run. Not done here: execution (``interpret``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, require_attributes
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
    symbol_names,
    visible_sizes,
)
from ingot_compiler.ir.rules.typing_rules import (
    BOOLS,
    require_dtype,
    require_operands,
    require_rank,
)
from ingot_compiler.ir.types import TensorType


def unified(regions: Sequence[Graph]) -> tuple[HoledType, ...]:
    """The results, with holes where the branches differ; OpTypeError when they cannot stand for one
    another."""
    require(len(regions) == 2, "two regions", len(regions))
    hidden = inner_symbols(regions[0]) | inner_symbols(regions[1])
    first, second = map(output_types, regions)
    counts = f"{len(first)} and {len(second)}"
    require(len(first) == len(second), "as many results in both branches", counts)
    holed: list[HoledType] = []
    for one, other in zip(first, second, strict=True):
        alike = one.dtype == other.dtype and one.rank == other.rank
        require(alike, "branches of one element type and rank", message(one, " and ", other))
        sizes = (visible_sizes(kind.shape, hidden) for kind in (one, other))
        pairs = zip(*sizes, strict=True)
        holed.append((one, tuple(left if left == right else HOLE for left, right in pairs)))
    return tuple(holed)


def _infer_regions(
    types: Sequence[TensorType], attributes: Attributes, regions: Sequence[Graph]
) -> tuple[TensorType, ...]:
    require_attributes(attributes, "symbols")
    require_operands(types, 1)
    require_dtype(types[0], BOOLS)
    require_rank(types[0], 0)
    require(not any(region.inputs for region in regions), "regions without inputs", "inputs")
    return fill_holes(unified(regions), symbol_names(attributes))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return Inferred(_infer_regions(types, attributes, ()))


def _reference(_operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return ()


OPS = (CoreOp("if", _infer, _reference, infer_regions=_infer_regions),)
