"""Ops of com.microsoft whose weights are numbers of a table, or tables of quantized numbers; and
inverses.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import numpy as np
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

# bitsandbytes: functional.py (NF4), and its tree of FP4.
NF4 = f32(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]
)  # fmt: skip
_MAGNITUDES = [0.0, 0.0052083333, 0.6666666667, 1.0, 0.3333333333, 0.5, 0.1666666667, 0.25]
FP4 = f32([*_MAGNITUDES, *(-number for number in _MAGNITUDES)])


def _product(name: str, depth: int, columns: int, block: int, *, is_nf4: bool) -> ContribCase:
    rng = np.random.default_rng(depth)
    count = depth * columns
    codes = rng.integers(0, 16, count + count % 2)
    data = (codes[0::2] * 16 + codes[1::2]).astype(np.uint8)
    scales = f32(rng.uniform(0.5, 2, -(-count // block)))
    numbers = (NF4 if is_nf4 else FP4)[codes[:count]] * np.repeat(scales, block)[:count]
    a = drawn(3, depth)
    attributes = {"K": depth, "N": columns, "block_size": block, "quant_type": int(is_nf4)}
    expected = f32(a.astype(np.float64) @ numbers.reshape(columns, depth).T)
    return ContribCase(
        f"MatMulBnb4 {name}", "MatMulBnb4", [a, data, scales], [expected], attributes, (1, 2)
    )


def _embedded(*, has_segments: bool) -> ContribCase:
    rng, width = np.random.default_rng(7), 8
    words = np.array([[3, 1, 4], [1, 5, 0]], np.int32)
    segments = np.array([[0, 0, 1], [1, 0, 0]], np.int32)
    sizes = ((6, width), (5, width), (2, width), (width,), (width,))
    tables = [rng.integers(0, 255, size).astype(np.uint8) for size in sizes]
    scales = [f32(rng.uniform(0.01, 0.05)) for _ in tables]
    zeros = [np.array(rng.integers(100, 150), np.uint8) for _ in tables]
    word, position, segment, gamma, beta = (
        (table.astype(np.float64) - zero) * scale
        for table, scale, zero in zip(tables, scales, zeros, strict=True)
    )
    total = word[words] + position[:3] + (segment[segments] if has_segments else 0)
    centred = total - total.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    given: list[list[Array | None]] = [[*tables], [*scales], [*zeros]]
    if not has_segments:
        for group in given:
            group[2] = None
    operands: list[Array | None] = [words, segments if has_segments else None]
    operands += [*given[0], mask, *given[1], *given[2]]
    return ContribCase(
        f"QEmbedLayerNormalization {'with' if has_segments else 'without'} segments",
        "QEmbedLayerNormalization",
        operands,
        [f32(normed * gamma + beta), mask.sum(1).astype(np.int32)],
    )


_MATRICES = drawn(2, 5, 5)
_MATRICES[0, 0, 0] = 0.0  # no pivot
CASES = [
    _product("of nf4", 32, 6, 16, is_nf4=True),
    _product("of fp4", 32, 6, 16, is_nf4=False),
    _product("of blocks that rows share", 5, 7, 16, is_nf4=True),
    _embedded(has_segments=True),
    _embedded(has_segments=False),
    ContribCase("Inverse", "Inverse", [_MATRICES], [f32(np.linalg.inv(_MATRICES))], tolerance=1e-4),
    ContribCase("Inverse of f64", "Inverse", [np.diag([2.0, 4.0])], [np.diag([0.5, 0.25])]),
]
