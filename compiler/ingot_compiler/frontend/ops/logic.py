"""ONNX's elementwise ops that compare, choose, or work on truth values and bits.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.direct import direct, swapped
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.strings.broadcasting import equal
from ingot_compiler.frontend.families.strings.pool import strings_of


def _equal(context: OpContext) -> Sequence[int]:
    """``a == b``, elementwise with broadcasting.

    In: two tensors of numbers or of strings. Out: core ``equal``.
    """
    if all(operand >= 0 for operand in context.given()):
        return direct("equal")(context)
    left, right = (strings_of(context, context.operand(at)) for at in range(2))
    return (equal(context, left, right),)


def _is_inf(context: OpContext) -> Sequence[int]:
    """Whether x is infinite, of the signs that the attributes ask for.

    In: a float tensor. Out: core ``isinf``.
    """
    positive, negative = (
        context.int_attribute("detect_positive", 1),
        context.int_attribute("detect_negative", 1),
    )
    return (
        context.add("isinf", context.operand(0), positive=bool(positive), negative=bool(negative)),
    )


OPS = (
    OnnxOp("And", direct("logical_and")),
    OnnxOp("BitwiseAnd", direct("bitwise_and")),
    OnnxOp("BitwiseNot", direct("bitwise_not")),
    OnnxOp("BitwiseOr", direct("bitwise_or")),
    OnnxOp("BitwiseXor", direct("bitwise_xor")),
    OnnxOp("Equal", _equal),
    OnnxOp("Greater", swapped("less")),
    OnnxOp("GreaterOrEqual", swapped("less_equal")),
    OnnxOp("IsInf", _is_inf),
    OnnxOp("IsNaN", direct("isnan")),
    OnnxOp("Less", direct("less")),
    OnnxOp("LessOrEqual", direct("less_equal")),
    OnnxOp("Not", direct("logical_not")),
    OnnxOp("Or", direct("logical_or")),
    OnnxOp("Where", direct("select")),
    OnnxOp("Xor", direct("logical_xor")),
)
