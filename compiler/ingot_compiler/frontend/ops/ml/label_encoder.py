"""ai.onnx.ml LabelEncoder: values in the place of keys, a default elsewhere.

In: a tensor of numbers or strings. Out: the values' element type, or strings. Not done here: how
numbers and strings are found (``perfect_hash``, ``strings/lookup``).

Of equal keys the last one counts. NaN is a key like any other from opset 4 on, and none before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.compose import (
    as_vector,
    broadcast_to,
    cast,
    reshape,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import vector_of
from ingot_compiler.frontend.families.strings.labels import labelled
from ingot_compiler.frontend.families.strings.lookup import places_among
from ingot_compiler.frontend.families.strings.perfect_hash import slots_among
from ingot_compiler.frontend.families.strings.pool import strings_of, written
from ingot_compiler.frontend.families.tensors.selection import sort_keys
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import FLOATS, DType

_NAN_SINCE = 4


def _translate(context: OpContext) -> Sequence[int]:
    if context.opset == 1:
        return (_of_first_opset(context),)
    x, keys, texts = context.operand(0), _texts(context, "keys"), _texts(context, "values")
    slot, found, places = (
        _among_numbers(context, x) if keys is None else _among_strings(context, x, keys)
    )
    if texts is not None:
        place = context.add("gather", places, slot, axis=0)
        return (labelled(context, place, found, [*texts, _default_text(context)]),)
    values = context.add("gather", _listed(context, "values"), places, axis=0)
    picked = context.add("gather", values, slot, axis=0)
    default = _default(context, context.dtype_of(values))
    default = broadcast_to(context, default, context.shape_of(slot))
    return (context.add("select", found, picked, default),)


def _of_first_opset(context: OpContext) -> int:
    """Opset 1: places in one list of strings, or the strings of places."""
    texts = _listed_texts(context.attributes.get("classes_strings", ()))
    x = context.operand(0)
    if x < 0:
        slot, found, places = _among_strings(context, x, texts)
        place = context.add("gather", places, slot, axis=0)
        default = context.scalar("i64", context.int_attribute("default_int64", -1))
        return context.add(
            "select", found, place, broadcast_to(context, default, context.shape_of(place))
        )
    place = cast(context, x, "i64")
    count = context.scalar("i64", len(texts))
    inside = context.add("logical_and", context.add("less_equal", context.scalar("i64", 0), place),
                         context.add("less", place, count))  # fmt: skip
    return labelled(context, place, inside, [*texts, _default_text(context)])


def _among_numbers(context: OpContext, x: int) -> tuple[int, int, int]:
    """For each number, the slot of a table, and whether the key there is equal; for all slots, the
    place of the key, of equal keys the last one."""
    dtype = context.dtype_of(x)
    numbers = _numbers(context, "keys")
    keys = _key_words(numbers, dtype)
    _require_values(context, len(keys))
    lasts = {key: place for place, key in enumerate(keys)}
    is_float = dtype in FLOATS
    words = cast(context, sort_keys(context, x), "u64") if is_float else cast(context, x, "i64")
    slots = slots_among(context, words, list(lasts))
    found, order = slots.found, slots.order
    if is_float and context.opset < _NAN_SINCE and np.isnan(numbers).any():
        is_number = context.add("logical_not", context.add("isnan", x))
        found = context.add("logical_and", found, is_number)
    if len(lasts) < len(keys):
        places = written(context, "i64", list(lasts.values()))
        order = context.add("gather", places, order, axis=0)
    return slots.slot, found, order


def _among_strings(context: OpContext, x: int, keys: Sequence[str]) -> tuple[int, int, int]:
    """For each string, the slot of a table, and whether the key there is equal; for all slots, the
    place of the key."""
    if context.opset > 1:
        _require_values(context, len(keys))
    lasts = {key: place for place, key in enumerate(keys)}
    place = places_among(context, strings_of(context, x), list(lasts))
    zero = context.scalar("i64", 0)
    found = context.add("less_equal", zero, place)
    places = written(context, "i64", [*lasts.values(), 0])
    return context.add("max", place, zero), found, places


def _key_words(keys: npt.NDArray[Any], dtype: DType) -> list[int]:
    """Keys as elements of ``dtype``, in integers: of floats what ``sort_keys`` makes of them."""
    if dtype not in FLOATS:
        whole: list[int] = keys.astype(np.int64).tolist()
        return whole
    wide = dtype == "f64"
    floats: npt.NDArray[Any] = keys.astype(np.float64 if wide else np.float32)
    bits: npt.NDArray[Any] = floats.view(np.uint64 if wide else np.uint32)
    sign = bits.dtype.type(1 << 8 * bits.itemsize - 1)
    words = np.where(floats < 0, ~bits, bits | sign)
    ordered: list[int] = np.where(np.isnan(floats), ~bits.dtype.type(0), words).tolist()
    return ordered


def _require_values(context: OpContext, count: object) -> None:
    """Refuse a table with another number of values than of keys."""
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


def _numbers(context: OpContext, what: str) -> npt.NDArray[Any]:
    """Keys that are numbers."""
    for suffix in ("tensor", "floats", "int64s"):
        source = context.attributes.get(f"{what}_{suffix}")
        if isinstance(source, ConstantSource) and source.type.element_count != 0:
            return context.translation.elements(source)
    return np.array(_written_numbers(context, what), np.int64)


def _listed(context: OpContext, what: str) -> int:
    """Values that are numbers, as a vector."""
    tensor = context.attributes.get(f"{what}_tensor")
    if isinstance(tensor, ConstantSource):
        return as_vector(context, context.constant(tensor))
    for name in (f"{what}_floats", f"{what}_int64s"):
        stored = vector_of(context, name)
        if stored is not None:
            return stored
    return context.integers(_written_numbers(context, what))


def _written_numbers(context: OpContext, what: str) -> tuple[int, ...]:
    numbers = context.ints_or(f"{what}_int64s", ())
    if not numbers:
        raise OpTypeError(f"{what}_int64s, {what}_floats or {what}_tensor", "none of them")
    return numbers


def _default(context: OpContext, dtype: str) -> int:
    tensor = context.attributes.get("default_tensor")
    if isinstance(tensor, ConstantSource):
        return reshape(context, context.constant(tensor), ())
    if dtype in FLOATS:
        return context.scalar(
            "f64" if dtype == "f64" else "f32", context.float_attribute("default_float", -0.0)
        )
    return context.scalar("i64", context.int_attribute("default_int64", -1))


OPS = (OnnxOp("LabelEncoder", _translate),)
