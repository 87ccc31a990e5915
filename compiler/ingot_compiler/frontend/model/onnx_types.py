"""Element types of ONNX and of Ingot.

In: an ONNX ``TensorProto.DataType`` number. Out: a ``DType``, or None where Ingot has none
(strings, complex, 6-bit floats). Not done here: bytes
(``tensor_data``).
"""

from __future__ import annotations

from onnx import TensorProto

from ingot_compiler.ir.types import DType

_NUMBERS: tuple[tuple[int, DType], ...] = (
    (TensorProto.FLOAT, "f32"),
    (TensorProto.DOUBLE, "f64"),
    (TensorProto.FLOAT16, "f16"),
    (TensorProto.BFLOAT16, "bf16"),
    (TensorProto.INT8, "i8"),
    (TensorProto.INT16, "i16"),
    (TensorProto.INT32, "i32"),
    (TensorProto.INT64, "i64"),
    (TensorProto.UINT8, "u8"),
    (TensorProto.UINT16, "u16"),
    (TensorProto.UINT32, "u32"),
    (TensorProto.UINT64, "u64"),
    (TensorProto.BOOL, "bool"),
    (TensorProto.FLOAT8E4M3FN, "f8e4m3fn"),
    (TensorProto.FLOAT8E4M3FNUZ, "f8e4m3fnuz"),
    (TensorProto.FLOAT8E5M2, "f8e5m2"),
    (TensorProto.FLOAT8E5M2FNUZ, "f8e5m2fnuz"),
    (TensorProto.FLOAT8E8M0, "f8e8m0"),
    (TensorProto.FLOAT4E2M1, "f4e2m1"),
    (TensorProto.INT4, "i4"),
    (TensorProto.UINT4, "u4"),
    (TensorProto.INT2, "i2"),
    (TensorProto.UINT2, "u2"),
)
_DTYPES: dict[int, DType] = dict(_NUMBERS)
_ONNX_NUMBERS: dict[DType, int] = {dtype: number for number, dtype in _NUMBERS}


def dtype_of(number: int) -> DType | None:
    """The element type of ``TensorProto.DataType`` ``number``, None when Ingot has none."""
    return _DTYPES.get(number)


def onnx_number(dtype: DType) -> int:
    """The ``TensorProto.DataType`` of an element type."""
    return _ONNX_NUMBERS[dtype]


def onnx_dtype_name(number: int) -> str:
    """The name of a data type for messages: ours, ONNX's own where we have none, else the
    number."""
    if number in _DTYPES:
        return _DTYPES[number]
    names = {value: name for name, value in TensorProto.DataType.items()}
    return str(names.get(number, f"data type {number}")).lower()
