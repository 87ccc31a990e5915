"""ONNX GlobalLpPool: the p-norm over all spatial axes.

In: x[N, C, spatial..]. Out: core ``abs``, ``pow``, ``reduce``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import spatial_count
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, p = context.operand(0), context.int_attribute("p", 2)
    if p == 0:
        raise OpTypeError("p above 0", "0")
    powers = binary_scalar(context, "pow", context.add("abs", x), p)
    axes = tuple(range(2, 2 + spatial_count(context, x)))
    return (
        binary_scalar(
            context,
            "pow",
            reduce(context, powers, "sum", axes, keepdims=True),
            1 / p,
        ),
    )


OP = OnnxOp("GlobalLpPool", _translate, since=2)
