"""``copy{destination}``: the same tensor on another virtual device.

In: any tensor; ``destination``, the name of the device that the result lives on. Out: a tensor of
the same type. Not done here: choosing where values live (``placement.place``, which alone writes
this op), moving bytes (``main``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_str, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.typing_rules import require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "destination")
    require_operands(types, 1)
    attribute_str(attributes, "destination")
    return Inferred((types[0],))


def _reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0],)


OP = CoreOp("copy", _infer, _reference, traits=Trait.MOVEMENT)
