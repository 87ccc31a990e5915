"""The dense little-endian bytes of an ONNX tensor.

In: a ``TensorProto``, its detached bytes if any, a reader of external data. Out: type and bytes,
checked against each other before anything of their size is allocated. Not done here: storing
(``import_model``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.types import LOW_BITS, DType, TensorType, dtype_size_bytes

ExternalReader = Callable[[str, int, int | None], memoryview]
"""(location, offset in bytes, size in bytes or None for the rest) -> those bytes of a file beside
the model."""

_FIELDS: dict[DType, tuple[str, str]] = {
    # element type: (typed field of TensorProto, numpy type of its elements' bit patterns)
    "f32": ("float_data", "<f4"),
    "f64": ("double_data", "<f8"),
    "f16": ("int32_data", "<u2"),
    "bf16": ("int32_data", "<u2"),
    "i8": ("int32_data", "<i1"),
    "i16": ("int32_data", "<i2"),
    "i32": ("int32_data", "<i4"),
    "i64": ("int64_data", "<i8"),
    "u8": ("int32_data", "<u1"),
    "u16": ("int32_data", "<u2"),
    "u32": ("uint64_data", "<u4"),
    "u64": ("uint64_data", "<u8"),
    "bool": ("int32_data", "|b1"),
    **dict.fromkeys(LOW_BITS, ("int32_data", "<u1")),
}
PACKED_BITS: dict[DType, int] = {"f4e2m1": 4, "i4": 4, "u4": 4, "i2": 2, "u2": 2}
"""Element types of which a file has several in a byte, the first one in the low bits."""

_FIELD_TYPES = {
    "float_data": "<f4",
    "double_data": "<f8",
    "int32_data": "<i8",
    "int64_data": "<i8",
    "uint64_data": "<u8",
}


class UnsupportedDtype(Exception):
    """A tensor of an element type that Ingot has not; ``name`` is ONNX's."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def tensor_type(tensor: TensorProto, where: Text) -> TensorType:
    """The type of a tensor; UnsupportedDtype, or ModelError for a negative dimension."""
    dtype = dtype_of(tensor.data_type)
    if dtype is None:
        raise UnsupportedDtype(onnx_dtype_name(tensor.data_type))
    shape = tuple(tensor.dims)
    if any(dim < 0 for dim in shape):
        why = f"expected sizes >= 0, got {list(shape)}"
        raise ModelError("a tensor has a negative dimension", where, why, _DO)
    return TensorType(dtype, shape)


def tensor_bytes(
    tensor: TensorProto, raw: memoryview | None, read_external: ExternalReader, where: Text
) -> tuple[TensorType, memoryview]:
    """Type and bytes of ``tensor``; ModelError when the bytes contradict the shape."""
    type_ = tensor_type(tensor, where)
    count = prod(int(dim) for dim in tensor.dims)
    size_bytes = _stored_size_bytes(type_.dtype, count)
    if tensor.data_location == TensorProto.EXTERNAL:
        return type_, _clean(
            _external(tensor, size_bytes, read_external, where), type_.dtype, count
        )
    if raw is None and tensor.HasField("raw_data"):
        raw = memoryview(tensor.raw_data)
    if raw is not None:
        _check_size(size_bytes, len(raw), type_, where)
        return type_, _clean(raw, type_.dtype, count)
    return type_, _typed_field(tensor, type_, count, where)


def _check_size(expected_bytes: int, got_bytes: int, type_: TensorType, where: Text) -> None:
    if expected_bytes != got_bytes:
        amount = "few" if got_bytes < expected_bytes else "many"
        why = f"expected {expected_bytes} bytes for {type_}, got {got_bytes}"
        raise ModelError(f"a tensor has too {amount} bytes", where, why, _DO)


def _typed_field(tensor: TensorProto, type_: TensorType, count: int, where: Text) -> memoryview:
    name, pattern = _FIELDS[type_.dtype]
    values = getattr(tensor, name)
    stored = _stored_size_bytes(type_.dtype, count) if type_.dtype in PACKED_BITS else count
    if len(values) != stored:
        amount = "few" if len(values) < count else "many"
        why = f"expected {stored} elements for {type_}, got {len(values)}"
        raise ModelError(f"a tensor has too {amount} elements", where, why, _DO)
    numbers = np.array(values, _FIELD_TYPES[name])
    if name == "int32_data":
        _check_range(numbers, np.dtype(pattern).itemsize, type_, where)
    # Through the field's own type: bit patterns and negative numbers wrap into the narrow one.
    data = memoryview(numbers.astype(pattern).tobytes())
    return _clean(data, type_.dtype, count)


def _check_range(
    numbers: npt.NDArray[np.int64], size_bytes: int, type_: TensorType, where: Text
) -> None:
    """Integers or bit patterns that ``size_bytes`` have room for, with a sign or without one."""
    low, high = -(1 << 8 * size_bytes - 1), 1 << 8 * size_bytes
    outside = numbers[(numbers < low) | (numbers >= high)]
    if len(outside):
        why = f"expected numbers in [{low}, {high}) for {type_}, got {outside[0]}"
        raise ModelError("a tensor has an element outside of its type", where, why, _DO)


def _stored_size_bytes(dtype: DType, count: int) -> int:
    """The bytes of ``count`` elements in a file; the last one may be partly used."""
    bits = PACKED_BITS.get(dtype)
    return count * dtype_size_bytes(dtype) if bits is None else (count * bits + 7) // 8


def external_entries(tensor: TensorProto) -> dict[str, str]:
    """What a tensor says of the place of its bytes: ``location``, ``offset``, ..."""
    return {str(entry.key): str(entry.value) for entry in tensor.external_data}


def _external(
    tensor: TensorProto, size_bytes: int, read_external: ExternalReader, where: Text
) -> memoryview:
    entries = external_entries(tensor)
    offset_bytes, length_bytes = _range(entries, size_bytes, where)
    location = entries.get("location", "")
    place = f"in location {location!r}"
    if length_bytes != size_bytes:
        why = f"expected {size_bytes} bytes, got a length of {length_bytes} {place}"
        raise ModelError("external data contradicts the tensor's shape", where, why, _DO)
    data = read_external(location, offset_bytes, size_bytes)
    if len(data) != size_bytes:
        why = f"expected {size_bytes} bytes, got {len(data)} {place}"
        raise ModelError("external data is too short", where, why, _DO)
    return data


def _range(entries: Mapping[str, str], size_bytes: int, where: Text) -> tuple[int, int]:
    """Offset and length in bytes; ``size_bytes`` from the beginning where nothing is said."""
    what = "external data has a bad offset or length"
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", size_bytes))
    except ValueError:
        why = f"expected integers, got {dict(entries)}"
        raise ModelError(what, where, why, _DO) from None
    if offset < 0 or length < 0:
        raise ModelError(what, where, f"expected integers >= 0, got {offset}, {length}", _DO)
    return offset, length


def _clean(data: memoryview, dtype: DType, count: int) -> memoryview:
    """Bools as 0 and 1: code relies on it, files do not always hold it. RaggedSequence elements one in a
    byte; what follows the last one is left out."""
    if dtype in PACKED_BITS:
        bits = PACKED_BITS[dtype]
        places = np.arange(0, 8, bits, dtype=np.uint8)
        spread = np.frombuffer(data, np.uint8)[:, None] >> places & ((1 << bits) - 1)
        return memoryview(spread.reshape(-1)[:count].astype(np.uint8).tobytes())
    if dtype == "bool" and len(data) and np.frombuffer(data, np.uint8).max() > 1:
        return memoryview((np.frombuffer(data, np.uint8) != 0).tobytes())
    return data


_DO = "export the model again; the file was damaged or written wrongly"
