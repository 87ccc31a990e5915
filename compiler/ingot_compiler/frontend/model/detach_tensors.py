"""Takes the weights out of a model file without copying them, so that protobuf parses kilobytes and
not gigabytes.

In: the bytes of a model file. Out: the same model without the ``raw_data`` of its large
initializers, and those bytes as views of the file. Not done here: anything that needs to know ONNX
beyond four field numbers (``import_model``).

Wire format: protobuf encoding of onnx.proto, ModelProto.graph = 7, GraphProto.initializer = 5,
TensorProto.raw_data = 9.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.errors import ModelError
from ingot_runtime.lazy_dataclass import dataclass

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DETACHED_SIZE_BYTES_MIN = 4096
_MODEL_FIELDS = {
    1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2,
}  # fmt: skip
"""Number of a field of ``ModelProto`` -> its wire type."""


@dataclass(frozen=True, slots=True)
class DetachedModel:
    """``model``: the file without large ``raw_data``; ``tensors``: position of an initializer ->
    its bytes in the file."""

    model: bytes
    tensors: dict[int, memoryview]


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    wire_type: int
    start: int  # of the tag
    content: int  # of the content, behind tag and length
    end: int


class _Malformed(Exception):
    """The bytes break off (``truncated``) or are no protobuf message."""

    def __init__(self, offset: int, *, truncated: bool) -> None:
        super().__init__(offset)
        self.offset = offset
        self.truncated = truncated


def detach_tensors(source: bytes | memoryview) -> DetachedModel:
    """Split a model file; ModelError when it is not an ONNX file or breaks off."""
    data = memoryview(source).cast("B")
    if not len(data):
        raise _not_onnx("the file is empty")
    parts: list[bytes | memoryview] = []
    tensors: dict[int, memoryview] = {}
    has_graph = False
    try:
        for field in _fields(data, 0, len(data)):
            _check_model_field(field)
            is_graph = field.number == _GRAPH
            has_graph |= is_graph
            parts += _graph(data, field, tensors) if is_graph else [data[field.start : field.end]]
    except _Malformed as error:
        is_model = has_graph or _starts_like_a_model(data)
        raise _wrong(error, len(data), is_model=is_model) from None
    if not has_graph:
        raise _not_onnx("it holds no graph")
    return DetachedModel(b"".join(parts), tensors)


def _wrong(error: _Malformed, size_bytes: int, *, is_model: bool) -> ModelError:
    """A model that breaks off, or a file of another kind."""
    if not error.truncated or not is_model:
        return _not_onnx(f"byte {error.offset} is no protobuf field of an ONNX model")
    why, do = f"expected more than its {size_bytes} bytes", "copy or download the file again"
    where = f"model file, byte {error.offset}"
    return ModelError("the model file is truncated", where, why, do)


def _not_onnx(why: str) -> ModelError:
    return ModelError(
        "the file is not an ONNX model", "model file", why, "give the path of an .onnx file"
    )


def _check_model_field(field: _Field) -> None:
    if _MODEL_FIELDS.get(field.number, field.wire_type) != field.wire_type:
        raise _Malformed(field.start, truncated=False)


def _starts_like_a_model(data: memoryview) -> bool:
    """Whether the first field is ``ir_version``, which every exporter writes first."""
    return data[0] == 0x08


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= end:
            raise _Malformed(position, truncated=True)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift >= 70:
            raise _Malformed(position, truncated=False)


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start = position
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        content = position
        if wire_type == _VARINT:
            _, position = _varint(data, position, end)
        elif wire_type == _BYTES:
            length, content = _varint(data, position, end)
            position = content + length
        elif wire_type in (_FIXED32, _FIXED64):
            position += 4 if wire_type == _FIXED32 else 8
        else:
            raise _Malformed(start, truncated=False)
        if number == 0:
            raise _Malformed(start, truncated=False)
        if position > end:
            raise _Malformed(start, truncated=True)
        yield _Field(number, wire_type, start, content, position)


def _encode(number: int, size_bytes: int) -> bytes:
    """Tag and length of a length-delimited field."""
    encoded = bytearray()
    for value in (number << 3 | _BYTES, size_bytes):
        rest = value
        while rest >= 0x80:
            encoded.append(rest & 0x7F | 0x80)
            rest >>= 7
        encoded.append(rest)
    return bytes(encoded)


def _message(number: int, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    return [_encode(number, sum(map(len, parts))), *parts]


def _graph(
    data: memoryview, graph: _Field, tensors: dict[int, memoryview]
) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    position = 0
    for field in _fields(data, graph.content, graph.end):
        if field.number != _INITIALIZER or field.wire_type != _BYTES:
            parts.append(data[field.start : field.end])
            continue
        kept, raw = _tensor(data, field)
        if raw is None:
            parts.append(data[field.start : field.end])
        else:
            tensors[position] = raw
            parts += _message(_INITIALIZER, kept)
        position += 1
    return _message(_GRAPH, parts)


def _tensor(data: memoryview, tensor: _Field) -> tuple[list[bytes | memoryview], memoryview | None]:
    kept: list[bytes | memoryview] = []
    raw: memoryview | None = None
    for field in _fields(data, tensor.content, tensor.end):
        if (
            field.number == _RAW_DATA
            and field.wire_type == _BYTES
            and field.end - field.content >= _DETACHED_SIZE_BYTES_MIN
        ):
            raw = data[field.content : field.end]
        else:
            kept.append(data[field.start : field.end])
    return kept, raw
