"""Tensor types: element type and shape; devices are decided by ``placement``.

In: dtype names and dimensions. Out: ``TensorType``. Not done here: inference (``ops``), layouts
(``lowering``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul, dim_product, format_dim
from ingot_compiler.ir.errors import UnsupportedError
from ingot_runtime.format.dtypes import DTYPE_CODES, DTYPE_SIZES_BYTES

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
    "i4",
    "u4",
]
DTYPES: tuple[DType, ...] = get_args(DType)
SUB_BYTE_SIZES_BITS: dict[DType, int] = {"i4": 4, "u4": 4}
"""Element types that share bytes: types can say them, no op and no bundle takes them yet."""
BYTE_DTYPES: tuple[DType, ...] = tuple(
    dtype for dtype in DTYPES if dtype not in SUB_BYTE_SIZES_BITS
)
"""Element types of whole bytes: every element has an address."""
FLOATS: frozenset[DType] = frozenset(("f32", "f64", "f16", "bf16"))
SIGNED: frozenset[DType] = frozenset(("i8", "i16", "i32", "i64"))
UNSIGNED: frozenset[DType] = frozenset(("u8", "u16", "u32", "u64"))


def dtype_size_bits(dtype: DType) -> int:
    """Bits of one element in memory (bool takes eight)."""
    return SUB_BYTE_SIZES_BITS.get(dtype) or 8 * dtype_size_bytes(dtype)


def dtype_size_bytes(dtype: DType) -> int:
    """Bytes of one element in memory (bool takes one).

    Raises:
        UnsupportedError: the elements of ``dtype`` share bytes.
    """
    return DTYPE_SIZES_BYTES[dtype_code(dtype)]


def dtype_code(dtype: DType) -> int:
    """The number of an element type in a bundle.

    Raises:
        UnsupportedError: a bundle cannot hold elements that share bytes.
    """
    if dtype in SUB_BYTE_SIZES_BITS:
        size_bits = SUB_BYTE_SIZES_BITS[dtype]
        raise UnsupportedError(
            f"elements of type {dtype} have no address of their own",
            why=f"expected an element type of whole bytes, got {dtype} of {size_bits} bits",
            do="use i8 or u8 in its place",
        )
    return DTYPE_CODES[dtype]


def elements_size_bytes(count: Dim, dtype: DType) -> Dim:
    """Bytes of ``count`` elements beside each other; the last byte may be partly used."""
    if dtype in SUB_BYTE_SIZES_BITS:
        return dim_floordiv(dim_add(dim_mul(count, dtype_size_bits(dtype)), 7), 8)
    return dim_mul(count, dtype_size_bytes(dtype))


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
        return elements_size_bytes(self.element_count, self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(format_dim, self.shape))}]"
