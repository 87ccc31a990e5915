"""ONNX Upsample: enlarge along every axis; opsets 7 to 9 (later ones have Resize).

In: a tensor; scales, an attribute (opset 7) or an operand (opset 9). Out: core ``resize``. Not done
here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.resize_target import (
    ResizeTarget,
    scaled_target,
    target_of_scales,
)
from ingot_compiler.frontend.ops.resize import Sampling, resample
from ingot_compiler.ir.op_type_error import OpTypeError


def _target(context: OpContext, x: int) -> ResizeTarget:
    axes = range(context.rank_of(x))
    if context.opset >= 9:
        return target_of_scales(context, x, axes, context.operand(1))
    value = context.attributes.get("scales")
    scales = [item for item in value if isinstance(item, float)] if isinstance(value, tuple) else []
    if len(scales) != len(axes):
        raise OpTypeError(f"{len(axes)} scales", scales)
    return scaled_target(context, x, axes, scales)


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axes = range(context.rank_of(x))
    return (resample(context, x, axes, _target(context, x), Sampling("asymmetric")),)


OP = OnnxOp("Upsample", _translate, 7)
