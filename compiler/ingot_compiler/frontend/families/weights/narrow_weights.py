"""Matrices of f32 whose numbers are all bf16 or f16: what models become that were trained in 16 bits
and exported in 32.

In: the nodes of a graph; a matrix. Out: which tensors are worth a look; the same numbers in 16 bits.
Not done here: storing them (``import_model``), widening them again (``OpContext.constant``).

A product by one row takes the time in which its weights come from memory, and a kernel widens them
on the way. Nothing is rounded: every number is the same, with its sign, and so is every result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from ingot_compiler.frontend.model.sort_nodes import names_read
from ingot_compiler.ir.types import DType, TensorType

_PLACES: Mapping[str, tuple[int, ...]] = {
    "FusedMatMul": (1,),
    "Gather": (0,),
    "GatherND": (0,),
    "Gemm": (1,),
    "MatMul": (1,),
    "MoE": (2, 4, 6),
}
"""The operands that are right factors or tables; of others a cast is folded back to f32."""
_RANKS = (2, 3)  # a matrix, or one for each expert of a mixture
_MOVES = ("Identity", "Transpose")
_COUNT_MIN = 1 << 19  # 2 MiB of f32: a smaller one stays in the cache of a core
_BLOCK = 1 << 15
_LOW_BITS = np.uint32(0xFFFF)

Bits = npt.NDArray[np.uint32]
Number = TypeVar("Number", bound=np.generic)


def factors_and_tables(nodes: Sequence[NodeProto], outputs: Collection[str]) -> frozenset[str]:
    """The tensors that are right factors of products and tables of look-ups alone, perhaps
    transposed on the way.

    ``nodes``: of a graph, each behind those it reads; ``outputs``: the graph's.
    """
    read, elsewhere = set[str](), set[str](outputs)
    for node in reversed(nodes):
        places = _PLACES.get(node.op_type, ())
        if node.op_type in _MOVES and node.output[0] in read - elsewhere:
            places = (0,)
        for position, name in enumerate(names_read(node)):
            (read if position in places else elsewhere).add(name)
    return frozenset(read - elsewhere)


def in_16_bits(tensor_type: TensorType, content: memoryview) -> tuple[DType, memoryview] | None:
    """The numbers of a large f32 matrix as bf16, or else as f16, bit for bit; None where one of them
    is neither, which mostly the first block tells, or is NaN: a cast, by a processor or where
    constants are folded, may change its bits.

    ``content``: the elements, little-endian. Besides the result no more memory is taken than blocks
    need.
    """
    sizes = [size for size in tensor_type.shape if isinstance(size, int)]
    if tensor_type.dtype != "f32" or tensor_type.rank not in _RANKS or prod(sizes) < _COUNT_MIN:
        return None
    bits = np.frombuffer(content, "<u4")
    return _as_bf16(bits) or _as_f16(bits)


def _as_bf16(bits: Bits) -> tuple[DType, memoryview] | None:
    if any((block & _LOW_BITS).any() or _has_nan(block) for block in _blocks(bits)):
        return None
    return "bf16", _bytes(bits.view("<u2")[1::2])


def _as_f16(bits: Bits) -> tuple[DType, memoryview] | None:
    halves = np.empty(len(bits), "<f2")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for block, narrow in zip(_blocks(bits), _blocks(halves), strict=True):
            narrow[:] = block.view("<f4")
            same = narrow.astype("<f4").view("<u4") == block
            if not same.all() or _has_nan(block):
                return None
    return "f16", _bytes(halves)


def _has_nan(bits: Bits) -> bool:
    return bool(np.isnan(bits.view("<f4")).any())


def _blocks(numbers: npt.NDArray[Number]) -> Iterable[npt.NDArray[Number]]:
    return (numbers[start : start + _BLOCK] for start in range(0, len(numbers), _BLOCK))


def _bytes(halves: npt.NDArray[np.generic]) -> memoryview:
    return np.ascontiguousarray(halves).view(np.uint8).data
