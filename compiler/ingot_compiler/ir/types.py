"""Tensor types: element type and shape; devices are decided by ``placement``.

In: dtype names and dimensions. Out: ``TensorType``. Not done here: inference (``ops``), layouts
(``lowering``).
"""

from __future__ import annotations

from typing import Literal, get_args

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, format_dim
from ingot_runtime.format.dtypes import DTYPE_CODES, DTYPE_SIZES_BYTES
from ingot_runtime.lazy_dataclass import dataclass

DType = Literal[
    "f32",
    "f64",
    "f16",
    "bf16",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "bool",
    "f8e4m3fn",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "f8e8m0",
    "f4e2m1",
    "i4",
    "u4",
    "i2",
    "u2",
]
DTYPES: tuple[DType, ...] = get_args(DType)
LOW_BITS: frozenset[DType] = frozenset(
    ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2")
)
"""Element types that are stored, moved and converted, never computed in: one element is its ONNX
bit pattern in the low bits of a byte, whose other bits mean nothing."""
COMPUTED_DTYPES: tuple[DType, ...] = tuple(dtype for dtype in DTYPES if dtype not in LOW_BITS)
"""Element types that ops compute in."""
FLOATS: frozenset[DType] = frozenset(("f32", "f64", "f16", "bf16"))
HALVES: tuple[DType, ...] = ("f16", "bf16")
SIGNED: frozenset[DType] = frozenset(("i8", "i16", "i32", "i64"))
UNSIGNED: frozenset[DType] = frozenset(("u8", "u16", "u32", "u64"))


def dtype_size_bits(dtype: DType) -> int:
    """Bits of one element in memory (bool takes eight)."""
    return 8 * dtype_size_bytes(dtype)


def dtype_size_bytes(dtype: DType) -> int:
    """Bytes of one element in memory (bool takes one)."""
    return DTYPE_SIZES_BYTES[dtype_code(dtype)]


def dtype_code(dtype: DType) -> int:
    """The number of an element type in a bundle."""
    return DTYPE_CODES[dtype]


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor; ``shape`` holds integers or symbolic expressions, ``()`` is a scalar."""

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def element_count(self) -> Dim:
        """Product of the dimensions."""
        return dim_product(self.shape)

    @property
    def size_bytes(self) -> Dim:
        """Bytes of a dense copy."""
        return dim_mul(self.element_count, dtype_size_bytes(self.dtype))

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(format_dim, self.shape))}]"
