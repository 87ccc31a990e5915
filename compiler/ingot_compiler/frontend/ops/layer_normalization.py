"""ONNX LayerNormalization: mean 0 and variance 1 over the last axes, scaled and shifted.

In: x, scale, perhaps bias. Out: core ``layer_norm``; the optional Mean and InvStdDev from
``reduce``. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import broadcast_to, cast, full
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.norms import moments
from ingot_compiler.frontend.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, scale, bias = context.operand(0), context.operand(1), context.optional(2)
    axis = context.axis(context.int_attribute("axis", -1), context.rank_of(x))
    epsilon, tail = context.float_attribute("epsilon", 1e-5), context.shape_of(x)[axis:]
    dtype = context.dtype_of(x)
    ones = full(context, dtype, 1, tail) if len(context.shape_of(scale)) > len(tail) else None
    zeros = full(context, dtype, 0, tail) if ones is not None or bias is None else None
    if ones is not None and zeros is not None:
        # Parameters that differ between rows.
        normal = context.add("layer_norm", x, ones, zeros, axis=axis, epsilon=epsilon)
        result = context.add("mul", normal, scale)
        result = result if bias is None else context.add("add", result, bias)
    else:
        shift = broadcast_to(context, bias, tail) if bias is not None else zeros
        assert shift is not None
        result = context.add(
            "layer_norm", x, broadcast_to(context, scale, tail), shift, axis=axis, epsilon=epsilon
        )
    if not (context.wants(1) or context.wants(2)):
        return (result,)
    # Statistics are f32 even of a half type (stash_type).
    wide = cast(context, x, "f32") if context.int_attribute("stash_type", 1) == 1 else x
    return result, *moments(context, wide, tuple(range(axis, context.rank_of(x))), epsilon)


OP = OnnxOp("LayerNormalization", _translate)
