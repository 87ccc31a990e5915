"""ai.onnx.ml LabelEncoder: values in the place of keys, a default elsewhere.

In: a tensor of numbers. Out: the values' element type. Not done here: strings.

Each element is compared with every key: of equal keys the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    as_vector,
    broadcast_to,
    cast,
    reduce,
    reshape,
    unsqueeze,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.ml_scores import numbers_of, vector_of
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    strings = [name for name in ("keys_strings", "values_strings") if context.attributes.get(name)]
    if strings or (context.opset == 1):
        raise Unsupported("labels that are strings")
    x, keys, values = context.operand(0), _listed(context, "keys"), _listed(context, "values")
    count = context.shape_of(keys)[0]
    require(context.shape_of(values) == (count,), f"{count} values", context.type_of(values))
    keys = cast(context, keys, context.dtype_of(x))
    hit = _hits(context, unsqueeze(context, x, (context.rank_of(x),)), keys)
    last = context.rank_of(x)
    flags = cast(context, hit, "i32")
    place = context.add("argmax", flags, axis=last, keepdims=False, select_last=True)
    found = cast(context, reduce(context, flags, "max", (last,)), "bool")
    picked = context.add("gather", values, place, axis=0)
    default = broadcast_to(
        context, _default(context, context.dtype_of(values)), context.shape_of(x)
    )
    return (context.add("select", found, picked, default),)


def _hits(context: OpContext, x: int, keys: int) -> int:
    equal = context.add("equal", x, keys)
    if context.dtype_of(x) not in FLOATS:
        return equal
    both = context.add("logical_and", context.add("isnan", x), context.add("isnan", keys))
    return context.add("logical_or", equal, both)


def _listed(context: OpContext, what: str) -> int:
    """The keys, or the values, as a vector."""
    tensor, floats = context.attributes.get(f"{what}_tensor"), vector_of(context, f"{what}_floats")
    whole = numbers_of(context, f"{what}_int64s")
    if isinstance(tensor, ConstantSource):
        return as_vector(context, context.constant(tensor))
    if floats is not None:
        return floats
    if not whole:
        raise OpTypeError(f"{what}_int64s, {what}_floats or {what}_tensor", "none of them")
    return context.integers(whole)


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
