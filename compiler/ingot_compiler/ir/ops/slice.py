"""``slice{starts, sizes, steps}``: element i of the result is x[starts + i * steps], per axis (ONNX
Slice-13, resolved).

In: any tensor; one entry per axis, steps are non-zero integers. Out: its element type, shape
``sizes``. Not done here: clamping and negative starts (the frontend resolves them); every access
must be in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_ints,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import inside_axis
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "sizes", "starts", "steps")
    require_operands(types, 1)
    starts, sizes = attribute_dims(attributes, "starts"), attribute_dims(attributes, "sizes")
    steps = attribute_ints(attributes, "steps")
    lengths = (len(starts), len(sizes), len(steps))
    require(lengths == (types[0].rank,) * 3, f"{types[0].rank} starts, sizes and steps", lengths)
    require_sizes(sizes, "sizes")
    axes = zip(types[0].shape, starts, sizes, steps, strict=True)
    constraints = tuple(bound for axis in axes for bound in inside_axis(*axis))
    return Inferred((TensorType(types[0].dtype, sizes),), constraints)


def _python_slice(start: int, size: int, step: int) -> slice:
    stop = start + size * step
    # A stop below 0 would count from the end.
    return slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    entries = zip(
        *(attribute_ints(attributes, name) for name in ("starts", "sizes", "steps")), strict=True
    )
    return (operands[0][tuple(_python_slice(*entry) for entry in entries)],)


OP = CoreOp("slice", _infer, _reference, traits=Trait.MOVEMENT)
