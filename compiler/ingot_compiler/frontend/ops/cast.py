"""ONNX Cast: change of element type.

In: a tensor. Out: core ``cast``. Not done here: strings, 4- and 8-bit floats (reported as
unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import cast
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.onnx_types import dtype_of, onnx_dtype_name


def _translate(context: OpContext) -> Sequence[int]:
    number = context.int_attribute("to", 0)
    dtype = dtype_of(number)
    if dtype is None:
        raise Unsupported(f"a cast to {onnx_dtype_name(number)}")
    return (cast(context, context.operand(0), dtype),)


OP = OnnxOp("Cast", _translate)
