"""``gather_elements(x, indices){axis}``: result[.., i, ..] = x[.., indices[.., i, ..], ..] (ONNX
GatherElements-13).

In: any tensor and integers of the same rank, in [-d, d); beside the axis, indices may be smaller
than x. Out: x's element type, indices' shape. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import element_index
from ingot_compiler.ir.rules.typing_rules import infer_scattered_elements, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require_operands(types, 2)
    return infer_scattered_elements(types, attributes)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices = operands
    return (x[element_index(indices, attribute_int(attributes, "axis"))],)


OP = CoreOp("gather_elements", _infer, _reference, traits=Trait.INDEXED)
