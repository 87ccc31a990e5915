"""ONNX Runtime NhwcConv: ONNX's Conv of images whose channels come last.

In: x[N, H, W, C], weights [O, kernel.., C / group], perhaps a bias. Out: what Conv gives, with its
channels last. Not done here: types (``ir/ops``).

The kernel for GPUs and the optimiser that writes the op have the channels of weights last; its
documentation has them first, which is taken where the sizes say so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.ir.dims import dim_mul


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    operands = [to_first(context, x), _weights(context, x), context.optional(2)]
    return (to_last(context, results_of(context, "Conv", operands, context.attributes)[0]),)


def _weights(context: OpContext, x: int) -> int:
    """[O, C / group, kernel..]."""
    w, channels = context.operand(1), context.shape_of(x)[-1]
    groups = context.int_attribute("group", 1)
    sizes = sizes_of(context, w, context.rank_of(x))
    is_first = dim_mul(sizes[1], groups) == channels and dim_mul(sizes[-1], groups) != channels
    return w if is_first else to_first(context, w)


OP = OnnxOp(
    "NhwcConv",
    _translate,
    signature="X W B? -> Y; auto_pad:string dilations:ints group:int kernel_shape:ints p"
    "ads:ints strides:ints",
)
