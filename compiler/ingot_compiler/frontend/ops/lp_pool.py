"""ONNX LpPool: the p-norm per window.

In: x[N, C, spatial..] of floats. Out: core ``abs``, ``pow``, ``average_pool``, ``mul``. Not done
here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ingot_compiler.frontend.build.compose import binary_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import pool_attributes
from ingot_compiler.ir.attributes import attribute_ints
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, p = context.operand(0), context.int_attribute("p", 2)
    if p == 0:
        raise OpTypeError("p above 0", "0")
    attributes, _ = pool_attributes(context, x)
    # A sum is the mean over every element of the window, padding counted as 0, times their number.
    powers = binary_scalar(context, "pow", context.add("abs", x), p)
    means = context.add(
        "average_pool",
        powers,
        **attributes,
        count_include_pad=True,
        pads_counted_after=attributes["pads_after"],
    )
    sums = binary_scalar(context, "mul", means, prod(attribute_ints(attributes, "kernel")))
    return (binary_scalar(context, "pow", sums, 1 / p),)


OP = OnnxOp("LpPool", _translate, since=2)
