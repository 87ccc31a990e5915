"""ONNX Cast: change of element type.

In: a tensor. Out: core ``cast``, or what ``low_bits`` and ``strings`` compose. Not done here:
low-bit types as strings and back, 6-bit floats (reported as unsupported).
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
from ingot_compiler.ir.rules.typing_rules import INTEGERS
from ingot_compiler.ir.types import FLOATS, DType


def _translate(context: OpContext) -> Sequence[int]:
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


OP = OnnxOp("Cast", _translate)
