"""ONNX's ops that change the element type.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.pool import strings_of
from ingot_compiler.frontend.families.strings.read_numbers import as_bool, as_f64, as_i64
from ingot_compiler.frontend.families.strings.write_floats import written_floats, written_truths
from ingot_compiler.frontend.families.strings.write_numbers import written_integers
from ingot_compiler.frontend.families.weights.low_bits import ROUNDINGS, Rounding, convert
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import INTEGERS
from ingot_compiler.ir.types import FLOATS, DType, dtype_size_bits

_FLOATS: frozenset[DType] = frozenset(("f32", "f64"))
_WHOLE = INTEGERS | _FLOATS


def _bit_cast(context: OpContext) -> Sequence[int]:
    """Reads the bits as another element type of the same width.

    In: a tensor. Out: core ``bit_cast``.
    """
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


def _cast(context: OpContext) -> Sequence[int]:
    """Change of element type.

    In: a tensor. Out: core ``cast``, or what ``low_bits`` and ``strings`` compose.
    """
    number = context.int_attribute("to", 0)
    dtype, x = dtype_of(number), context.operand(0)
    to_strings = onnx_dtype_name(number) == "string"
    if x < 0 or to_strings:
        return (cast_strings(context, x, dtype),)
    if dtype is None:
        raise Unsupported(f"a cast to {onnx_dtype_name(number)}")
    saturate, rounding = cast_attributes(context)
    return (convert(context, x, dtype, saturate=saturate, rounding=rounding),)


def cast_strings(context: OpContext, x: int, dtype: DType | None) -> int:
    """Strings as numbers; numbers as strings where ``dtype`` is None."""
    if dtype is None:
        return x if x < 0 else add_value(context, _as_strings(context, x))
    strings = strings_of(context, x)
    if dtype in INTEGERS:
        return cast(context, as_i64(context, strings), dtype)
    if dtype == "bool":
        return as_bool(context, strings)
    if dtype not in FLOATS:
        raise Unsupported(f"a cast of strings to {dtype}")
    return cast(context, as_f64(context, strings), dtype)


def _as_strings(context: OpContext, x: int) -> Strings:
    """The strings of numbers or truths."""
    dtype = context.dtype_of(x)
    if dtype == "bool":
        return written_truths(context, x)
    return written_floats(context, x) if dtype in FLOATS else written_integers(context, x)


def cast_attributes(context: OpContext) -> tuple[bool, Rounding]:
    """``saturate`` and ``round_mode`` of Cast and CastLike."""
    text = context.string_attribute("round_mode", "up", ROUNDINGS)
    rounding: Rounding = next(known for known in ROUNDINGS if known == text)
    return bool(context.int_attribute("saturate", 1)), rounding


def _cast_like(context: OpContext) -> Sequence[int]:
    """Change to the element type of another tensor.

    In: a tensor and one of the wanted type. Out: core ``cast``, or what ``low_bits`` and
    ``strings`` compose.
    """
    x, like = context.operand(0), context.operand(1)
    if x < 0 or like < 0:
        return (cast_strings(context, x, None if like < 0 else context.dtype_of(like)),)
    saturate, rounding = cast_attributes(context)
    dtype = context.dtype_of(like)
    return (convert(context, x, dtype, saturate=saturate, rounding=rounding),)


OPS = (
    OnnxOp("BitCast", _bit_cast),
    OnnxOp("Cast", _cast),
    OnnxOp("CastLike", _cast_like),
)
