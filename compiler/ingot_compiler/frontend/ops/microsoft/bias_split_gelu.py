"""ONNX Runtime BiasSplitGelu: of x + bias, the left half times Gelu of the right half.

In: a float tensor, a bias along its last axis. Out: core ``add``, ``slice``, ``gelu``, ``mul``. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    total = context.add("add", context.operand(0), context.operand(1))
    require(context.rank_of(total) > 0, "rank >= 1", context.type_of(total))
    *rows, size = context.shape_of(total)
    half = dim_floordiv(size, 2)
    pair = reshape(context, total, (*rows, 2, half))
    left, right = (
        reshape(context, slice_axis(context, pair, len(rows), at, 1), (*rows, half))
        for at in (0, 1)
    )
    return (context.add("mul", left, context.add("gelu", right, approximate="none")),)


OP = OnnxOp("BiasSplitGelu", _translate, signature="X bias -> Y")
