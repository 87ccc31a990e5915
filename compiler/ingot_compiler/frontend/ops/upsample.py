"""ONNX Upsample: enlarge along every axis; opsets 7 to 9 (later ones have Resize).

In: a tensor; scales, an attribute (opset 7) or an operand (opset 9). Out: core ``resize``. Not done here: scales computed
at run time (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.resize import known_floats, resample, scaled_size
from ingot_compiler.ir.op import OpTypeError


def _scales(context: OpContext) -> tuple[float, ...]:
    if context.opset >= 9:
        known = known_floats(context, context.operand(1))
        if known is None:
            raise Unsupported("scales that are computed at run time")
        return known
    value = context.attributes.get("scales")
    floats = tuple(item for item in value if isinstance(item, float)) if isinstance(value, tuple) else ()
    return floats


def _translate(context: OpContext) -> Sequence[int]:
    x, scales = context.operand(0), _scales(context)
    rank = context.rank_of(x)
    if len(scales) != rank or not all(scale > 0 for scale in scales):
        raise OpTypeError(f"{rank} scales > 0", str(scales))
    sizes = [scaled_size(size, scale) for size, scale in zip(context.shape_of(x), scales, strict=True)]
    roi = (0.0,) * (2 * rank)
    return (resample(context, x, range(rank), sizes, scales, roi=roi, coordinates="asymmetric"),)


OP = OnnxOp("Upsample", _translate, 7)
