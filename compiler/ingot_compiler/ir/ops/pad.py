"""``pad(x, value){before, after, mode}``: elements added around x (ONNX Pad-25; negative pads
become a slice before).

In: a tensor and a rank-0 value of its element type; before and after per axis, >= 0. Modes:
"constant" (value), "edge", "reflect" (mirrored without the edge), "wrap"; only "constant" reads
value. Out: the padded tensor. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_ints,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.dims import dim_add
from ingot_compiler.ir.make_shape_constraints import elements_along
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import (
    require_operands,
    require_rank,
    require_same_dtype,
    require_sizes,
)

MODES = ("constant", "edge", "reflect", "wrap")


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "after", "before", "mode")
    require_operands(types, 2)
    require_same_dtype(types)
    require_rank(types[1], 0)
    before, after = attribute_dims(attributes, "before"), attribute_dims(attributes, "after")
    rank = types[0].rank
    require(
        (len(before), len(after)) == (rank, rank),
        f"{rank} pads before and after",
        (len(before), len(after)),
    )
    require_sizes((*before, *after), "pads")
    mode = attribute_str(attributes, "mode", MODES)
    sizes = zip(before, types[0].shape, after, strict=True)
    shape = tuple(dim_add(dim_add(low, dim), high) for low, dim, high in sizes)
    result = TensorType(types[0].dtype, shape)
    if mode == "constant":
        return Inferred((result,))
    grows_from_nothing = any(
        dim == 0 and out != 0 for dim, out in zip(types[0].shape, shape, strict=True)
    )
    require(not grows_from_nothing, f"elements to {mode}", types[0])
    padded = (
        dim for dim, *pads in zip(types[0].shape, before, after, strict=True) if pads != [0, 0]
    )
    return Inferred(
        (result,),
        tuple(bound for dim in padded for bound in elements_along(dim, result.element_count)),
    )


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, value = operands
    widths = list(
        zip(attribute_ints(attributes, "before"), attribute_ints(attributes, "after"), strict=True)
    )
    mode = attribute_str(attributes, "mode", MODES)
    if not widths:
        return (x,)
    if mode == "constant":
        return (np.pad(x, widths, "constant", constant_values=value.item()),)
    return (
        np.pad(x, widths, "edge" if mode == "edge" else "reflect" if mode == "reflect" else "wrap"),
    )


OP = CoreOp("pad", _infer, _reference)
