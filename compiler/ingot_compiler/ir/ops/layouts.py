"""Core ops that move elements and compute nothing.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_dims,
    attribute_int,
    attribute_ints,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.dims import Dim, dim_add
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import (
    broadcasts_to,
    elements_along,
    equal_shapes,
    inside_axis,
    same_count,
    sizes_of,
)
from ingot_compiler.ir.rules.typing_rules import (
    require_operands,
    require_rank,
    require_same_dtype,
    require_sizes,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer_concat(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require(len(types) > 0, "at least one operand", 0)
    require_same_dtype(types)
    axis = attribute_axis(attributes, types[0].rank)
    total: Dim = 0
    for tensor in types:
        require_rank(tensor, types[0].rank)
        total = dim_add(total, tensor.shape[axis])
    sizes = [sizes_of(types, operand) for operand in range(len(types))]
    beside = equal_shapes("sizes beside the axis", *((*of[:axis], *of[axis + 1 :]) for of in sizes))
    rest = [constraint.common for constraint in beside]
    return Inferred((TensorType(types[0].dtype, (*rest[:axis], total, *rest[axis:])),), beside)


def _reference_concat(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.concatenate(list(operands), attribute_int(attributes, "axis")),)


CONCAT = CoreOp("concat", _infer_concat, _reference_concat, traits=Trait.MOVEMENT)
"""``concat{axis}``: operands one after the other along an axis (ONNX Concat-13).

In: one or more tensors of one element type, equal but for ``axis``. Out: that type, sizes added
along ``axis``.
"""


def _infer_append(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_operands(types, 2, 2)
    return CONCAT.infer(types, attributes)


APPEND = CoreOp("append", _infer_append, CONCAT.reference, traits=Trait.MOVEMENT)
"""``append(past, new){axis}``: what a caller keeps from call to call, and this call's part behind
it.

In: two tensors of one element type, equal but for ``axis``. Out: as ``concat`` of both. It is an op
of its own because the result may lie where the first operand does (``lowering.groups.states``).
"""


def _infer_broadcast_to(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "shape")
    require_operands(types, 1)
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(types[0].dtype, shape),), (broadcasts_to(types[0].shape, shape),))


def _reference_broadcast_to(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.broadcast_to(operands[0], attribute_ints(attributes, "shape")),)


BROADCAST_TO = CoreOp(
    "broadcast_to", _infer_broadcast_to, _reference_broadcast_to, traits=Trait.MOVEMENT
)
"""``broadcast_to{shape}``: x repeated along new axes and axes of size 1 (ONNX Expand-13,
resolved).

In: any tensor. Out: its element type, ``shape``.
"""


def _infer_copy(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "destination")
    require_operands(types, 1)
    attribute_str(attributes, "destination")
    return Inferred((types[0],))


def _reference_copy(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0],)


COPY = CoreOp("copy", _infer_copy, _reference_copy, traits=Trait.MOVEMENT)
"""``copy{destination}``: the same tensor on another virtual device.

In: any tensor; ``destination``, the name of the device that the result lives on. Out: a tensor of
the same type.
"""


MODES = ("constant", "edge", "reflect", "wrap")


def _infer_pad(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference_pad(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
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


PAD = CoreOp("pad", _infer_pad, _reference_pad, traits=Trait.CODES | Trait.CLOSED)
"""``pad(x, value){before, after, mode}``: elements added around x (ONNX Pad-25; negative pads
become a slice before).

In: a tensor and a rank-0 value of its element type; before and after per axis, >= 0. Modes:
"constant" (value), "edge", "reflect" (mirrored without the edge), "wrap"; only "constant" reads
value. Out: the padded tensor.
"""


def _infer_reshape(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "shape")
    require_operands(types, 1)
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(types[0].dtype, shape),), same_count(types[0].shape, shape))


def _reference_reshape(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].reshape(attribute_ints(attributes, "shape")),)


RESHAPE = CoreOp("reshape", _infer_reshape, _reference_reshape, traits=Trait.MOVEMENT)
"""``reshape{shape}``: the same elements in row-major order under another shape (ONNX
Reshape-25, sizes resolved).

In: any tensor. Out: its element type, ``shape``.
"""


def _infer_slice(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference_slice(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    entries = zip(
        *(attribute_ints(attributes, name) for name in ("starts", "sizes", "steps")), strict=True
    )
    return (operands[0][tuple(_python_slice(*entry) for entry in entries)],)


SLICE = CoreOp("slice", _infer_slice, _reference_slice, traits=Trait.MOVEMENT)
"""``slice{starts, sizes, steps}``: element i of the result is x[starts + i * steps], per axis
(ONNX Slice-13, resolved).

In: any tensor; one entry per axis, steps are non-zero integers. Out: its element type, shape
``sizes``.
"""


def _infer_transpose(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference_transpose(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].transpose(attribute_ints(attributes, "permutation")),)


TRANSPOSE = CoreOp("transpose", _infer_transpose, _reference_transpose, traits=Trait.MOVEMENT)
"""``transpose{permutation}``: axis i of the result is axis permutation[i] of x (ONNX
Transpose-25).

In: any tensor. Out: its element type, permuted shape.
"""


OPS = (
    CONCAT,
    APPEND,
    BROADCAST_TO,
    COPY,
    PAD,
    RESHAPE,
    SLICE,
    TRANSPOSE,
)
