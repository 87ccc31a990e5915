"""ai.onnx.ml LabelEncoder: values in the place of keys, a default elsewhere.

In: a tensor of numbers. Out: the values' element type. Not done here: strings.

Keys are sorted, and each element is looked for by halves: of equal keys the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    as_vector,
    binary_scalar,
    broadcast_to,
    cast,
    reshape,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.ml_scores import vector_of
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.selection import sort_keys
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    strings = [name for name in ("keys_strings", "values_strings") if context.attributes.get(name)]
    if strings or (context.opset == 1):
        raise Unsupported("labels that are strings")
    x, keys, values = context.operand(0), _listed(context, "keys"), _listed(context, "values")
    (count,) = context.shape_of(keys)
    require(context.shape_of(values) == (count,), f"{count} values", context.type_of(values))
    assert isinstance(count, int)
    keys = sort_keys(context, cast(context, keys, context.dtype_of(x)))
    order = context.add("argsort", keys, count=count)
    ordered = context.add("gather", keys, order, axis=0)
    wanted = sort_keys(context, x)
    place = _last_not_above(context, ordered, count, wanted)
    found = context.add("equal", context.add("gather", ordered, place, axis=0), wanted)
    ordered_values = context.add("gather", values, order, axis=0)
    picked = context.add("gather", ordered_values, place, axis=0)
    default = broadcast_to(
        context, _default(context, context.dtype_of(values)), context.shape_of(x)
    )
    return (context.add("select", found, picked, default),)


def _last_not_above(context: OpContext, ordered: int, count: int, wanted: int) -> int:
    """The place of the last of ``count`` ordered numbers that is not above a wanted one, by halves;
    0 where all are above."""
    place = context.scalar("i64", 0)
    for step in reversed(range((count - 1).bit_length())):
        further = binary_scalar(context, "add", place, 1 << step)
        inside = binary_scalar(context, "min", further, count - 1)
        above = context.add("less", wanted, context.add("gather", ordered, inside, axis=0))
        place = context.add("select", above, place, inside)
    return broadcast_to(context, place, context.shape_of(wanted))


def _listed(context: OpContext, what: str) -> int:
    """The keys, or the values, as a vector."""
    tensor = context.attributes.get(f"{what}_tensor")
    if isinstance(tensor, ConstantSource):
        return as_vector(context, context.constant(tensor))
    for name in (f"{what}_floats", f"{what}_int64s"):
        stored = vector_of(context, name)
        if stored is not None:
            return stored
    numbers = context.ints_or(f"{what}_int64s", ())
    if not numbers:
        raise OpTypeError(f"{what}_int64s, {what}_floats or {what}_tensor", "none of them")
    return context.integers(numbers)


def _default(context: OpContext, dtype: str) -> int:
    tensor = context.attributes.get("default_tensor")
    if isinstance(tensor, ConstantSource):
        return reshape(context, context.constant(tensor), ())
    if dtype in FLOATS:
        return context.scalar(
            "f64" if dtype == "f64" else "f32", context.float_attribute("default_float", -0.0)
        )
    return context.scalar("i64", context.int_attribute("default_int64", -1))


OP = OnnxOp("LabelEncoder", _translate)
