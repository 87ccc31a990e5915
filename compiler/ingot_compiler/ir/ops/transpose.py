"""``transpose{permutation}``: axis i of the result is axis permutation[i] of x (ONNX Transpose-25).

In: any tensor. Out: its element type, permuted shape. Not done here: a default permutation.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_ints, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "permutation")
    require_operands(types, 1)
    permutation = attribute_ints(attributes, "permutation")
    require(
        sorted(permutation) == list(range(types[0].rank)),
        f"a permutation of {types[0].rank} axes",
        permutation,
    )
    return Inferred(
        (TensorType(types[0].dtype, tuple(types[0].shape[axis] for axis in permutation)),)
    )


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].transpose(attribute_ints(attributes, "permutation")),)


OP = CoreOp("transpose", _infer, _reference, traits=Trait.MOVEMENT)
