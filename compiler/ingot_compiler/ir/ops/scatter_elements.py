"""``scatter_elements(x, indices, updates){axis, reduction}``: x with single elements replaced or
combined (ONNX ScatterElements-18).

In: a tensor, integers in [-d, d) of the same rank, updates of x's element type and indices' shape.
Out: x's type. result[.., indices[.., i, ..], ..] takes updates[.., i, ..]; with "none" the last
update in row-major order wins. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_int,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import element_index, scatter
from ingot_compiler.ir.rules.typing_rules import (
    SCATTER_REDUCTIONS,
    infer_scattered_elements,
    require_operands,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis", "reduction")
    require_operands(types, 3)
    attribute_str(attributes, "reduction", SCATTER_REDUCTIONS)
    return infer_scattered_elements(types, attributes)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices, updates = operands
    index = element_index(indices, attribute_int(attributes, "axis"))
    return (scatter(x, index, updates, attribute_str(attributes, "reduction")),)


OP = CoreOp("scatter_elements", _infer, _reference, traits=Trait.INDEXED)
