"""ONNX LRN: x / (bias + alpha / size * sum of x^2 over neighbouring channels)^beta.

In: x[N, C, spatial..] of floats. Out: core ``mul``, ``average_pool`` over channels, ``pow``,
``div``. Not done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import binary_scalar, reshape
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_from
from ingot_compiler.ir.dims import dim_product


def _translate(context: OpContext) -> Sequence[int]:
    x, size = context.operand(0), context.int_attribute("size", 1)
    shape = sizes_from(context, x, 2)
    # Channels as a spatial axis; padding counts as 0, so that the mean is the sum / size.
    image = reshape(
        context, context.add("mul", x, x), (shape[0], 1, shape[1], dim_product(shape[2:]))
    )
    before, after = ((size - 1) // 2, 0), (size // 2, 0)
    means = context.add(
        "average_pool", image, kernel=(size, 1), strides=(1, 1), dilations=(1, 1),
        pads_before=before, pads_after=after, count_include_pad=True, pads_counted_after=after,
    )  # fmt: skip
    base = reshape(context, means, shape)
    base = binary_scalar(context, "mul", base, context.float_attribute("alpha", 0.0001))
    base = binary_scalar(context, "add", base, context.float_attribute("bias", 1.0))
    base = binary_scalar(context, "pow", base, context.float_attribute("beta", 0.75))
    return (context.add("div", x, base),)


OP = OnnxOp("LRN", _translate)
