"""ONNX Runtime SimplifiedLayerNormalization, in ONNX's own domain: ONNX's RMSNormalization.

In: x, scale. Out: core ``rms_norm``; 1 / sqrt(mean of squares + epsilon) where asked for. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import binary_scalar, cast, reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.imported import ABSENT


def simplified(context: OpContext, x: int, scale: int, *, wants_inverse: bool) -> tuple[int, int]:
    """X normalised over its last axes, and the factor of each row."""
    axis = context.axis_attribute(-1, context.rank_of(x))
    epsilon = context.float_attribute("epsilon", 1e-5)
    result = as_onnx(context, "RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    if not wants_inverse:
        return result, ABSENT
    wide = cast(context, x, "f32") if context.int_attribute("stash_type", 1) == 1 else x
    axes = tuple(range(axis, context.rank_of(x)))
    mean = reduce(context, context.add("mul", wide, wide), "mean", axes, keepdims=True)
    root = context.add("sqrt", binary_scalar(context, "add", mean, epsilon))
    return result, context.add("reciprocal", root)


def _translate(context: OpContext) -> Sequence[int]:
    x, scale = context.operand(0), context.operand(1)
    return simplified(context, x, scale, wants_inverse=context.wants(1))


OP = OnnxOp(
    "SimplifiedLayerNormalization",
    _translate,
    signature="X scale -> Y inv_std_var?; axis:int epsilon:float stash_type:int",
)
