"""``scatter_elements(x, indices, updates){axis, reduction}``: x with single elements replaced or combined
(ONNX ScatterElements-18).

In: a tensor, integers in [-d, d) of the same rank, updates of x's element type and indices' shape. Out: x's type.
result[.., indices[.., i, ..], ..] takes updates[.., i, ..]; with "none" the last update in row-major order wins.
Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_axis, attribute_str, require_attributes
from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.reference_rules import element_index, integer, scatter
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import (
    SCATTER_REDUCTIONS,
    require_element_indices,
    require_operands,
    require_same_dtype,
    unify_shapes,
)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    require_attributes(attributes, "axis", "reduction")
    require_operands(types, 3)
    x, indices, updates = types
    require_element_indices(x, indices, attribute_axis(attributes, x.rank))
    require_same_dtype((x, updates))
    unify_shapes(indices.shape, updates.shape, "shapes of indices and updates")
    attribute_str(attributes, "reduction", SCATTER_REDUCTIONS)
    return (x,)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices, updates = operands
    index = element_index(indices, integer(attributes["axis"]))
    return (scatter(x, index, updates, str(attributes["reduction"])),)


OP = CoreOp("scatter_elements", _infer, _reference)
