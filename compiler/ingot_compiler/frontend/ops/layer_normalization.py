"""ONNX LayerNormalization: mean 0 and variance 1 over the last axes, scaled and shifted.

In: x, scale, perhaps bias. Out: core ``layer_norm``; the optional Mean and InvStdDev from
``reduce``. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, cast, full
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.norms import moments


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    axis, epsilon = context.axis_attribute(-1, rank), context.float_attribute("epsilon", 1e-5)
    result = _normalised(context, x, axis, epsilon)
    if not (context.wants(1) or context.wants(2)):
        return (result,)
    # Statistics are f32 even of a half type (stash_type).
    wide = cast(context, x, "f32") if context.int_attribute("stash_type", 1) == 1 else x
    return result, *moments(context, wide, tuple(range(axis, rank)), epsilon)


def _normalised(context: OpContext, x: int, axis: int, epsilon: float) -> int:
    scale, bias = context.operand(1), context.optional(2)
    dtype, tail = context.dtype_of(x), context.shape_of(x)[axis:]
    if context.rank_of(scale) > len(tail):
        # Parameters that differ between rows.
        ones, zeros = full(context, dtype, 1, tail), full(context, dtype, 0, tail)
        normal = context.add("layer_norm", x, ones, zeros, axis=axis, epsilon=epsilon)
        result = context.add("mul", normal, scale)
        return result if bias is None else context.add("add", result, bias)
    shift = full(context, dtype, 0, tail) if bias is None else broadcast_to(context, bias, tail)
    wide = broadcast_to(context, scale, tail)
    return context.add("layer_norm", x, wide, shift, axis=axis, epsilon=epsilon)


# ONNX Runtime writes it into models of opsets before 17, too.
OP = OnnxOp(
    "LayerNormalization",
    _translate,
    signature="X Scale B? -> Y Mean? InvStdDev?; axis:int epsilon:float stash_type:int",
)
