"""Core products by weights that lie as numbers of few bits in blocks.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.ops.products import GROUPS, nearest_group
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal, sizes_of
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands, require_rank
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType

BITS = (4, 8)
_F32: frozenset[DType] = frozenset(("f32",))
_SCALES: frozenset[DType] = frozenset(("f32", "f16", "bf16"))
_BYTES: frozenset[DType] = frozenset(("u8",))
WORD_BITS = 32
"""A block has whole words of this size."""
ROUNDED_LARGEST = 127
LEAST_MAGNITUDE, GREATEST_MAGNITUDE = 1e-30, 3e38
"""Bounds of the largest number of a block that is read as integers; a block of zeros may be, too."""


def _infer_matmul_blocks(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "bits", "block", "signed", "rounded")
    require_operands(types, 3, 4)
    bits, block = attribute_int(attributes, "bits"), attribute_int(attributes, "block")
    attribute_bool(attributes, "signed")
    attribute_bool(attributes, "rounded")
    require(bits in BITS, "bits to be 4 or 8", bits)
    require(block > 0 and block * bits % WORD_BITS == 0, "blocks of whole words", block)
    a, q, scale = types[:3]
    require_dtype(a, _F32)
    require_dtype(scale, _SCALES)
    for tensor in (q, *types[3:]):
        require_dtype(tensor, _BYTES)
    require(a.rank >= 2 and q.rank == 2, "ranks >= 2 and 2", f"{a} and {q}")
    depth, columns = a.shape[-1], q.shape[0]
    require(isinstance(depth, int) and depth % block == 0, "a depth of whole blocks", a)
    assert isinstance(depth, int)
    require(q.shape[1] == depth * bits // 8, f"{depth * bits // 8} bytes for each column", q)
    for parameter in types[2:]:
        wanted = (columns, depth // block)
        require(parameter.shape == wanted, f"a parameter for each of {wanted} blocks", parameter)
    return Inferred((TensorType("f32", (*a.shape[:-1], columns)),))


def _reference_matmul_blocks(
    operands: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...]:
    a, q, scale = operands[:3]
    bits, signed = attribute_int(attributes, "bits"), attribute_bool(attributes, "signed")
    places = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (q[:, :, None] >> places & ((1 << bits) - 1)).reshape(*scale.shape, -1)
    numbers = _numbers(codes, bits, signed=signed)
    if len(operands) > 3:
        numbers -= _numbers(operands[3][:, :, None], bits, signed=signed)
    if attribute_bool(attributes, "rounded"):
        a = _rounded(a, attribute_int(attributes, "block"))
    weights = (numbers * scale.astype(np.float64)[:, :, None]).reshape(len(q), -1)
    return (np.asarray(a.astype(np.float64) @ weights.T).astype(np.float32),)


def _rounded(a: Array, block: int) -> Array:
    """What the integers of each block stand for."""
    blocks = a.reshape(*a.shape[:-1], -1, block)
    greatest = np.abs(blocks).max(-1, keepdims=True)
    has_integers = (greatest >= LEAST_MAGNITUDE) & (greatest <= GREATEST_MAGNITUDE)
    step = np.where(has_integers, greatest, 1).astype(np.float32) / np.float32(ROUNDED_LARGEST)
    return np.where(has_integers, np.rint(blocks / step) * step.astype(np.float64), blocks).reshape(
        a.shape
    )


def _numbers(codes: Array, bits: int, *, signed: bool) -> Array:
    """What codes stand for, less the middle if they are unsigned."""
    half = 1 << (bits - 1)
    wide = codes.astype(np.int64) & ((1 << bits) - 1)
    return (wide ^ half) - half if signed else wide - half


MATMUL_BLOCKS = CoreOp(
    "matmul_blocks", _infer_matmul_blocks, _reference_matmul_blocks, traits=Trait.DENSE
)
"""``matmul_blocks(a, q, scale[, zero]){bits, block, signed, rounded}``: a product with a matrix
of 4- or 8-bit integers that have a scale, and perhaps a zero point, for each block along the
depth (MatMulNBits of ONNX Runtime; ONNX DequantizeLinear-21 before MatMul).

In: a f32 [.., M, K]; q u8 [N, K * bits / 8], the numbers of a column of the matrix after each
other, the first in the low bits; scale [N, K / block] of f32, f16 or
bf16; zero u8 [N, K / block]. Numbers and zero points
are two's complement if ``signed``; else an absent zero point is the middle, 2^(bits - 1). If
``rounded``, each block of a row of a stands for integers of 8 bits, times its largest magnitude by
127; not a block that has none, or none below 1e-30. Out: f32 [.., M, N].
"""


def _infer_grouped_matmul_blocks(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_operands(types, 4, 5)
    a, groups, *weights = types
    require_dtype(groups, GROUPS)
    require_rank(a, 2)
    require_rank(groups, 1)
    for tensor in weights:
        require_rank(tensor, 3)
    counts = {tensor.shape[0] for tensor in weights}
    require(len(counts) == 1, "as many groups of each", weights[0])
    matrices = [TensorType(tensor.dtype, tensor.shape[1:]) for tensor in weights]
    found = MATMUL_BLOCKS.infer((a, *matrices), attributes)
    rows = equal("rows and groups", sizes_of(types, 0)[0], sizes_of(types, 1)[0])
    picked = elements_along(weights[0].shape[0], found.results[0].shape)
    return Inferred(found.results, (rows, *picked))


def _reference_grouped_matmul_blocks(
    operands: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...]:
    a, groups, *weights = operands
    of_rows = nearest_group(groups, len(weights[0]))
    result = np.zeros((len(a), weights[0].shape[1]), np.float32)
    for group in np.unique(of_rows):
        own = [a[of_rows == group], *(tensor[group] for tensor in weights)]
        result[of_rows == group] = MATMUL_BLOCKS.reference(own, attributes)[0]
    return (result,)


GROUPED_MATMUL_BLOCKS = CoreOp(
    "grouped_matmul_blocks",
    _infer_grouped_matmul_blocks,
    _reference_grouped_matmul_blocks,
    traits=Trait.DENSE,
)
"""``grouped_matmul_blocks(a, groups, q, scale[, zero]){bits, block, signed, rounded}``: each
row by the matrix that its group names, of 4- or 8-bit integers that are scaled in blocks
(QMoE of ONNX Runtime).

In: a f32 [P, K]; groups i64 [P] as in ``grouped_matmul``; of q, scale and zero those of
``matmul_blocks`` for each group: [G, N, ..]. Out: f32 [P, N].
"""


OPS = (
    MATMUL_BLOCKS,
    GROUPED_MATMUL_BLOCKS,
)
