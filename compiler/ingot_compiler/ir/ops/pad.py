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
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import elements_along
from ingot_compiler.ir.rules.typing_rules import (
    require_operands,
    require_rank,
    require_same_dtype,
    require_sizes,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType

MODES = ("constant", "edge", "reflect", "wrap")


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "after", "before", "mode")
    require_operands(types, 2)
    require_same_dtype(types)
    require_rank(types[1], 0)
    before, after = attribute_dims(attributes, "before"), attribute_dims(attributes, "after")
    x, counts = types[0], (len(before), len(after))
    require(counts == (x.rank, x.rank), f"{x.rank} pads before and after", counts)
    require_sizes((*before, *after), "pads")
    mode = attribute_str(attributes, "mode", MODES)
    axes = list(zip(x.shape, before, after, strict=True))
    shape = tuple(dim_add(dim_add(low, dim), high) for dim, low, high in axes)
    result = TensorType(x.dtype, shape)
    if mode == "constant":
        return Inferred((result,))
    from_nothing = any(dim == 0 and out != 0 for dim, out in zip(x.shape, shape, strict=True))
    require(not from_nothing, f"elements to {mode}", x)
    padded = [dim for dim, *pads in axes if pads != [0, 0]]
    bounds = (bound for dim in padded for bound in elements_along(dim, result.shape))
    return Inferred((result,), tuple(bounds))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, value = operands
    before, after = attribute_ints(attributes, "before"), attribute_ints(attributes, "after")
    widths = list(zip(before, after, strict=True))
    mode = attribute_str(attributes, "mode", MODES)
    if not widths:
        return (x,)
    if mode == "constant":
        return (np.pad(x, widths, "constant", constant_values=value.item()),)
    return (
        np.pad(x, widths, "edge" if mode == "edge" else "reflect" if mode == "reflect" else "wrap"),
    )


OP = CoreOp("pad", _infer, _reference, traits=Trait.CODES | Trait.CLOSED)
