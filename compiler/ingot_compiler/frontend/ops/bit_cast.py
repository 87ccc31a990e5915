"""ONNX BitCast: the same bits as another element type of the same width.

In: a tensor. Out: core ``bit_cast``. Not done here: f16, bf16 and narrow types, results of bool, whose bits no
register holds alone (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import INTEGERS
from ingot_compiler.ir.types import DType, dtype_size_bits

_FLOATS: frozenset[DType] = frozenset(("f32", "f64"))
_WHOLE = INTEGERS | _FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    if context.dtype_of(x) == "bool":
        x = cast(context, x, "u8")  # 0 or 1, as a bool is stored
    own, number = context.dtype_of(x), context.int_attribute("to", 0)
    dtype = dtype_of(number)
    if dtype is None or not {own, dtype} <= _WHOLE:
        raise Unsupported(f"the bits of {own} as {onnx_dtype_name(number)}")
    fits = dtype_size_bits(dtype) == dtype_size_bits(own)
    require(fits, f"a type of {dtype_size_bits(own)} bits", dtype)
    return (cast(context, x, dtype) if own == dtype else context.add("bit_cast", x, dtype=dtype),)


OP = OnnxOp("BitCast", _translate)
