"""GroupQueryAttention with a cache of integers.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.contrib.cases_attention import attention, heads_of, scores_of
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_H, _G, _D, _B = 4, 2, 16, 2
_Q = drawn(_B, 3, _H * _D)
_NEW = [drawn(_B, 3, _G * _D, seed=seed) for seed in (1, 2)]


def _stored(codes: Array, bits: int) -> Array:
    """i8, or pairs in a byte."""
    if bits == 8:
        return codes.astype(np.int8)
    halves = (codes + 8).astype(np.uint8)
    return halves[..., 0::2] + 16 * halves[..., 1::2]


def _case(bits: int, *, past: int, rows: int, by_channel: bool = False) -> ContribCase:
    limit = 1 << bits - 1
    scales = [f32(3.0 / limit) * np.ones(1, np.float32) for _ in _NEW]
    if by_channel:
        scales = [
            f32(each * np.linspace(0.5, 1.5, _G * _D)).reshape(1, _G, 1, _D) for each in scales
        ]
    rng = np.random.default_rng(bits)
    pasts: list[Array] = []
    presents: list[Array] = []
    floats: list[Array] = []
    for new, scale in zip(_NEW, scales, strict=True):
        before: Array = rng.integers(-limit, limit, (_B, _G, past, _D))
        own: Array = np.clip(np.rint(heads_of(new[:, :rows], _G) / scale), -limit, limit - 1)
        codes = np.concatenate([before, own], 2)
        pasts.append(_stored(before, bits))
        presents.append(_stored(codes, bits))
        floats.append(codes * scale.astype(np.float64))
    seen = np.tri(rows, past + rows, past, dtype=np.bool_)
    scores = scores_of(heads_of(_Q[:, :rows], _H), floats[0])
    expected = attention(scores, floats[1], np.where(seen, 0.0, -np.inf))
    lengths = [np.full(_B, past + rows - 1, np.int32), np.array(past + rows, np.int32)]
    given = [x[:, :rows].copy() for x in (_Q, *_NEW)]
    kind = "PER_CHANNEL" if by_channel else "PER_TENSOR"
    attributes: dict[str, Any] = {"num_heads": _H, "kv_num_heads": _G, "kv_cache_bit_width": bits}
    attributes |= {"k_quant_type": kind, "v_quant_type": kind}
    name = f"{bits} bits, {rows} behind {past}{', by channel' if by_channel else ''}"
    return ContribCase(
        f"GroupQueryAttention {name}",
        "GroupQueryAttention",
        [*given, *pasts, *lengths, *[None] * 5, *scales],
        [expected, *presents],
        attributes,
    )


CASES = [
    _case(8, past=0, rows=3),
    _case(8, past=5, rows=1),
    _case(8, past=5, rows=1, by_channel=True),
    _case(4, past=0, rows=3),
    _case(4, past=5, rows=1),
    _case(4, past=5, rows=1, by_channel=True),
]
