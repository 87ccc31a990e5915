"""``composite(values...){name, plugin} {(values...) -> (results...)}``: ops that a plug-in has
claimed, computed as one; the region says what they mean.

In: values of the types of the region's inputs. Out: what the region returns. Not done here:
execution (``interpret``), who claims what (``plugins``).

The region reads its inputs alone, so that its meaning does not depend on where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_str, require_attributes
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.region_rules import bound_symbols, output_types
from ingot_compiler.ir.types import TensorType


def _infer_regions(
    types: Sequence[TensorType], attributes: Attributes, regions: Sequence[Graph]
) -> tuple[TensorType, ...]:
    require_attributes(attributes, "name", "plugin")
    for name in ("name", "plugin"):
        attribute_str(attributes, name)
    require(len(regions) == 1, "one region", len(regions))
    (region,) = regions
    inputs = tuple(region.types[value] for value in region.inputs)
    require(inputs == tuple(types), f"operands {_texts(inputs)}", _texts(types))
    made = {result for node in region.nodes for result in node.results}
    distinct = len(set(region.outputs)) == len(region.outputs) > 0
    computed = distinct and made.issuperset(region.outputs)
    require(computed, "a region that returns values of its nodes, each once", "others")
    read = {operand for node in region.nodes for operand in node.operands}
    inside = made.union(region.inputs).issuperset(read)
    require(inside, "a region that reads its inputs alone", "values outside of it")
    simple = not any(node.regions or bound_symbols(node) for node in region.nodes)
    require(simple, "a region without control flow", "some")
    return output_types(region)


def _texts(types: Sequence[TensorType]) -> Text:
    return ", ".join(map(str, types)) or "none"


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return Inferred(_infer_regions(types, attributes, ()))


def _reference(_operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return ()


OPS = (CoreOp("composite", _infer, _reference, infer_regions=_infer_regions),)
