"""ONNX Runtime UnfoldTensor: all slices of one size along an axis, as a further last axis.

In: x. Out: ``gather`` of the places of all slices. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import binary_scalar, iota, reshape, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = len(sizes_from(context, x, 1))
    size, step = context.int_attribute("size", 0), context.int_attribute("step", 1)
    axis = context.int_attribute("dim", -1)
    require(size > 0 and step > 0, "a size and a step above 0", f"{size} and {step}")
    require(-rank <= axis < rank, f"a dim within {rank} dimensions", str(axis))
    axis %= rank
    count = dim_floordiv(context.shape_of(x)[axis] - size, step) + 1
    firsts = reshape(context, binary_scalar(context, "mul", iota(context, count), step), (count, 1))
    places = context.add("add", firsts, reshape(context, iota(context, size), (1, size)))
    found = as_onnx(context, "Gather", x, places, axis=axis)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return (transpose(context, found, order),)


OP = OnnxOp("UnfoldTensor", _translate, signature="input -> output; dim:int size!:int step:int")
