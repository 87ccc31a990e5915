"""ai.onnx.ml LabelEncoder: values in the place of keys, a default elsewhere.

In: a tensor of numbers or strings. Out: the values' element type, or strings. Not done here: how
strings are found (``strings/lookup``).

Keys are sorted, and each number is looked for by halves: of equal keys the last one counts.
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
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.imported import ImportedAttribute
from ingot_compiler.frontend.ml_scores import vector_of
from ingot_compiler.frontend.onnx_node import RegionBody
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.selection import sort_keys
from ingot_compiler.frontend.strings.labels import labelled
from ingot_compiler.frontend.strings.lookup import places_among
from ingot_compiler.frontend.strings.pool import strings_of, written
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import FLOATS


def _translate(context: OpContext) -> Sequence[int]:
    if context.opset == 1:
        return (_of_first_opset(context),)
    x, keys, texts = context.operand(0), _texts(context, "keys"), _texts(context, "values")
    if keys is None:
        place, found = _among_numbers(context, x)
    else:
        place, found = _among_strings(context, x, keys)
    if texts is not None:
        return (labelled(context, place, found, [*texts, _default_text(context)]),)
    values = _listed(context, "values")
    picked = context.add("gather", values, place, axis=0)
    shape = context.shape_of(place)
    default = broadcast_to(context, _default(context, context.dtype_of(values)), shape)
    return (context.add("select", found, picked, default),)


def _of_first_opset(context: OpContext) -> int:
    """Opset 1: places in one list of strings, or the strings of places."""
    texts = _listed_texts(context.attributes.get("classes_strings", ()))
    x = context.operand(0)
    if x < 0:
        place, found = _among_strings(context, x, texts)
        default = context.scalar("i64", context.int_attribute("default_int64", -1))
        return context.add(
            "select", found, place, broadcast_to(context, default, context.shape_of(place))
        )
    place = cast(context, x, "i64")
    count = context.scalar("i64", len(texts))
    inside = context.add("logical_and", context.add("less_equal", context.scalar("i64", 0), place),
                         context.add("less", place, count))  # fmt: skip
    return labelled(context, place, inside, [*texts, _default_text(context)])


def _among_numbers(context: OpContext, x: int) -> tuple[int, int]:
    """Of each element: the place of the last key that is equal, and whether there is one."""
    keys = _listed(context, "keys")
    (count,) = context.shape_of(keys)
    _require_values(context, count)
    assert isinstance(count, int)
    keys = sort_keys(context, cast(context, keys, context.dtype_of(x)))
    order = context.add("argsort", keys, count=count)
    ordered = context.add("gather", keys, order, axis=0)
    wanted = sort_keys(context, x)
    place = _last_not_above(context, ordered, count, wanted)
    found = context.add("equal", context.add("gather", ordered, place, axis=0), wanted)
    return context.add("gather", order, place, axis=0), found


def _among_strings(context: OpContext, x: int, keys: Sequence[str]) -> tuple[int, int]:
    """The same of strings."""
    if context.opset > 1:
        _require_values(context, len(keys))
    lasts = {key: place for place, key in enumerate(keys)}
    place = places_among(context, strings_of(context, x), list(lasts))
    found = context.add("less_equal", context.scalar("i64", 0), place)
    table = written(context, "i64", [*lasts.values(), 0])
    safe = context.add("max", place, context.scalar("i64", 0))
    return context.add("gather", table, safe, axis=0), found


def _require_values(context: OpContext, count: object) -> None:
    """As many values as keys."""
    texts = _texts(context, "values")
    found = len(texts) if texts is not None else context.shape_of(_listed(context, "values"))[0]
    require(found == count, f"{count} values", str(found))


def _texts(context: OpContext, what: str) -> tuple[str, ...] | None:
    """Keys or values that are strings."""
    for name in (f"{what}_strings", f"{what}_tensor"):
        found = context.attributes.get(name)
        if isinstance(found, tuple) and found:
            return _listed_texts(found)
    return None


def _listed_texts(value: ImportedAttribute | RegionBody) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else ()


def _default_text(context: OpContext) -> str:
    tensor = context.attributes.get("default_tensor")
    if isinstance(tensor, tuple) and tensor:
        return str(tensor[0])
    return context.string_attribute("default_string", "_Unused")


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
