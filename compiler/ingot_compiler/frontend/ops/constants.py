"""ONNX's ops whose results follow from attributes and shapes.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, full, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.families.strings.pool import written_strings
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError


def _constant(context: OpContext) -> Sequence[int]:
    """A tensor that is written in the node.

    In: an attribute. Out: core ``literal`` or ``constant``, or strings.
    """
    name, value = next(iter(sorted(context.attributes.items())), ("", None))
    if isinstance(value, ConstantSource):
        return (context.written(value),)
    if isinstance(value, float):
        return (context.scalar("f32", value),)
    if isinstance(value, int):
        return (context.known("i64", as_known_values([value], ())),)
    if name == "value_ints":
        return (context.integers(context.ints_attribute(name) or ()),)
    if name == "value_floats" and isinstance(value, tuple):
        return (context.float_vector("f32", [float(item) for item in value]),)
    if isinstance(value, str):
        return (add_value(context, written_strings(context, [value], ())),)
    if isinstance(value, tuple):
        texts = [str(text) for text in value]
        return (add_value(context, written_strings(context, texts, (len(texts),))),)
    raise Unsupported("a constant without a value")


def _constant_of_shape(context: OpContext) -> Sequence[int]:
    """A tensor of one value.

    In: a shape that is known or computed at run time. Out: core ``literal``, ``broadcast_to``.
    """
    shape = context.read_dims(context.operand(0))
    wrong = [dim for dim in shape if isinstance(dim, int) and dim < 0]
    if wrong:
        raise OpTypeError("sizes >= 0", wrong[0])
    value = context.attributes.get("value")
    if isinstance(value, ConstantSource):
        return (broadcast_to(context, reshape(context, context.constant(value), ()), shape),)
    return (full(context, "f32", 0, shape),)


def _shape(context: OpContext) -> Sequence[int]:
    """The sizes of a tensor, perhaps of some axes only.

    In: a tensor. Out: core ``literal`` or ``dim_values``, i64.
    """
    shape = context.shape_of(context.operand(0))
    start, end = context.int_attribute("start", 0), context.int_attribute("end", len(shape))
    # Negative ones count from the end, both are clamped: Python's own rule.
    return (context.integers(shape[start:end]),)


def _size(context: OpContext) -> Sequence[int]:
    """The number of elements of a tensor.

    In: a tensor. Out: core ``literal`` or ``dim_values``, i64 of rank 0.
    """
    return (
        context.known(
            "i64", as_known_values([context.type_of(context.operand(0)).element_count], ())
        ),
    )


OPS = (
    OnnxOp("Constant", _constant),
    OnnxOp("ConstantOfShape", _constant_of_shape),
    OnnxOp("Shape", _shape),
    OnnxOp("Size", _size),
)
