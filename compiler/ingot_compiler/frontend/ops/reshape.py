"""ONNX Reshape: another shape; 0 copies a size (unless ``allowzero``), -1 takes what is left over.

In: a tensor and a shape that is known or computed at run time. Out: core ``reshape``. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.run_time_shapes import reshape_dims
from ingot_compiler.frontend.families.tensors.copied_sizes import copied_where_zero
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, shape = context.operand(0), context.operand(1)
    dims, copies = context.dims(shape), not context.int_attribute("allowzero", 0)
    if dims is None:
        target = reshape_dims(context, x, shape, zero_copies=copies)
    else:
        target = _target(context, dims, copies)
    return (reshape(context, x, target),)


def _target(context: OpContext, dims: Sequence[Dim], copies: bool) -> tuple[Dim, ...]:
    """The sizes; where their product is too long an expression, they are read at run time, each
    under a name of its own."""
    own = context.shape_of(context.operand(0))
    try:
        target = _resolve(own, dims, copies)
        dim_product(target)
    except LimitError:
        target = _resolve(own, context.named_dims(context.operand(1)), copies)
    return target


def _resolve(own: Sequence[Dim], wanted: Sequence[Dim], copies: bool) -> tuple[Dim, ...]:
    if wanted.count(-1) > 1:
        raise OpTypeError("at most one -1 in the shape", list(wanted))
    copied = [copies and dim == 0 for dim in wanted]
    if any(copied[len(own) :]):
        raise OpTypeError(f"0 only at the {len(own)} axes of the operand", list(wanted))
    target = [own[index] if copied[index] else dim for index, dim in enumerate(wanted)]
    read = copied_where_zero(own, target) if copies else tuple(target)
    if -1 not in wanted:
        return read
    # Copied sizes stand on both sides: without them, an empty axis does not leave -1 undecided.
    kept = [dim for index, dim in enumerate(own) if index >= len(copied) or not copied[index]]
    named = [dim for index, dim in enumerate(target) if not copied[index] and dim != -1]
    left, others = dim_product(tuple(kept)), dim_product(tuple(named))
    if isinstance(left, int) and isinstance(others, int) and (left % others if others else left):
        raise OpTypeError(message("a shape of ", left, " elements"), list(wanted))
    place, rest = wanted.index(-1), dim_floordiv(left, others)
    if read != tuple(target):
        rest = dim_floordiv(
            dim_product(tuple(own)), dim_product((*read[:place], *read[place + 1 :]))
        )
    return (*read[:place], rest, *read[place + 1 :])


OPS = (OnnxOp("Reshape", _translate, since=5),)
