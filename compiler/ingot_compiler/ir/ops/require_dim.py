"""``require_dim(){difference, what}``: the run is refused with ``what`` unless the size expression
``difference`` is 0.

In: nothing. Out: no value. Not done here: conditions on the elements of tensors (``require``).

It stands for its own sake: no pass drops it because nobody uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dim,
    attribute_text,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.typing_rules import require_operands
from ingot_compiler.ir.shape_constraints import SizeBound
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "difference", "what")
    require_operands(types, 0)
    difference, what = attribute_dim(attributes, "difference"), attribute_text(attributes, "what")
    return Inferred((), (SizeBound(difference, what),))


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    if attribute_dim(attributes, "difference") != 0:
        raise ValueError(str(attribute_text(attributes, "what")))
    return ()


OP = CoreOp("require_dim", _infer, _reference)
