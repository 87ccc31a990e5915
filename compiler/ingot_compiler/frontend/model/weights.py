"""Stores the tensors of a model file, wherever their bytes lie.

In: a ``TensorProto``, its detached bytes if any. Out: the number of its weight, and its type. Not
done here: which tensors are stored (``import_model``), what their bytes are (``tensor_data``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from ingot_compiler.frontend.families.weights.narrow_weights import in_16_bits
from ingot_compiler.frontend.model.external_checksum import check_checksum
from ingot_compiler.frontend.model.tensor_data import ExternalReader, tensor_bytes
from ingot_compiler.ir.constants import ConstantWriter
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.types import DType, TensorType


class Weights:
    """The weights of one model. ``names``: weight -> what the file calls it, in the order of
    numbers."""

    def __init__(self, read_external: ExternalReader, write: ConstantWriter) -> None:
        self.names: dict[str, str] = {}
        self._read_external = read_external
        self._write = write
        self._checksums: dict[str, str] = {}

    def store(
        self,
        tensor: TensorProto,
        where: str,
        raw: memoryview | None = None,
        *,
        may_narrow: bool = False,
    ) -> ConstantSource:
        """Store a tensor; ``raw`` are its bytes where they were detached from the file;
        ``may_narrow``: in 16 bits, if they hold its numbers.

        Raises:
            UnsupportedDtype: an element type that Ingot has not.
            ModelError: bytes that contradict the shape or the checksum; it names ``where``.
        """
        type_, data = tensor_bytes(tensor, raw, self._read_external, where)
        check_checksum(tensor, self._read_external, self._checksums, where)
        stored, data = (may_narrow and in_16_bits(type_, data)) or (None, data)
        weight = self._write(data)
        self.names.setdefault(weight, tensor.name or where)
        return ConstantSource(weight, type_, stored)

    def keep(self, array: npt.NDArray[Any], name: str) -> ConstantSource:
        """Store an array of integers or floats that was made of what the file calls ``name``."""
        tensor_type = TensorType(_DTYPES[array.dtype.str[1:]], array.shape)
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        weight = self._write(little.reshape(-1).view(np.uint8).data)
        self.names.setdefault(weight, name)
        return ConstantSource(weight, tensor_type)


_DTYPES: dict[str, DType] = {"f4": "f32", "f8": "f64", "i8": "i64", "u4": "u32", "u8": "u64"}
