"""Ops of com.microsoft that decoders of text and their loops have.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.contrib.cases_attention import attention, heads_of, scores_of
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_H, _D = 4, 16
_ONE, _KEY, _VALUE = (drawn(2, 1, _H * _D, seed=seed) for seed in range(3))
_PAST_K, _PAST_V = drawn(2, _H, 5, _D, seed=4), drawn(2, _H, 5, _D, seed=5)
_Q1, _K1, _V1 = (heads_of(x, _H) for x in (_ONE, _KEY, _VALUE))
_ALL_K, _ALL_V = np.concatenate([_PAST_K, _K1], 2), np.concatenate([_PAST_V, _V1], 2)
_BIAS = drawn(192, seed=3)
_BIASED = [
    heads_of(x + b, _H) for x, b in zip((_ONE, _KEY, _VALUE), np.split(_BIAS, 3), strict=True)
]
_KEPT = np.array([[1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 0, 1]], np.int32)
_FILLED = np.where(_KEPT > 0, 0.0, -10000.0)[:, None, None]
_BIASED_K = np.concatenate([_PAST_K, _BIASED[1]], 2)
_BIASED_V = np.concatenate([_PAST_V, _BIASED[2]], 2)


_LONG_K, _LONG_V = drawn(2, _H, 8, _D, seed=6), drawn(2, _H, 8, _D, seed=7)
_LONG_K[:, :, :5], _LONG_V[:, :, :5] = _PAST_K, _PAST_V
_HELD = np.array([5], np.int32)


def _in_place(past: Array, row: Array) -> Array:
    """A buffer with the row behind five others replaced."""
    return f32(np.concatenate([past[:, :, :5], row, past[:, :, 6:]], 2))


def _token(
    name: str,
    operands: list[Array | None],
    expected: list[Array | None],
    *,
    is_numpy_only: bool = False,
    **attributes: Any,
) -> ContribCase:
    op = "DecoderMaskedMultiHeadAttention"
    attributes = {"num_heads": _H, **attributes}
    return ContribCase(
        f"{op} {name}", op, operands, expected, attributes, is_numpy_only=is_numpy_only
    )


_TOKENS = [
    _token(
        "of itself",
        [_ONE, _KEY, _VALUE, None, None, _PAST_K, _PAST_V],
        [attention(scores_of(_Q1, _ALL_K), _ALL_V), _ALL_K, _ALL_V],
        is_numpy_only=True,
    ),
    _token(
        "of an encoder",
        [_ONE, _PAST_K, _PAST_V],
        [attention(scores_of(_Q1, _PAST_K), _PAST_V)],
    ),
    _token(
        "in a shared buffer",
        [_ONE, _KEY, _VALUE, None, None, _LONG_K, _LONG_V, _HELD],
        [
            attention(scores_of(_Q1, _ALL_K), _ALL_V),
            _in_place(_LONG_K, _K1),
            _in_place(_LONG_V, _V1),
        ],
        past_present_share_buffer=1,
    ),
    _token(
        "mask and bias",
        [_ONE, _KEY, _VALUE, _KEPT, None, _LONG_K, _LONG_V, _HELD, None, None, _BIAS],
        [
            attention(scores_of(_BIASED[0], _BIASED_K), _BIASED_V, _FILLED),
            _in_place(_LONG_K, _BIASED[1]),
            _in_place(_LONG_V, _BIASED[2]),
        ],
        past_present_share_buffer=1,
    ),
]

_TEXT = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 0, 4]])
_SCORES = drawn(2, 6)


def _blocked(size: int, *places: tuple[int, int]) -> ContribCase:
    expected = _SCORES.copy()
    for row, token in places:
        expected[row, token] = -np.inf
    return ContribCase(
        f"NGramRepeatBlock of {size}",
        "NGramRepeatBlock",
        [_TEXT, _SCORES],
        [expected],
        {"ngram_size": size},
    )


_LOOPS = [
    _blocked(1, (0, 1), (0, 2), (0, 3), (1, 4), (1, 0)),
    _blocked(2, (0, 3), (1, 4), (1, 0)),
    _blocked(3, (0, 3)),
    _blocked(7),
]
_BLOCK, _BUFFER = 16, 48
_BLOCKS: Array = np.array(
    [[[1, 0, 0], [1, 1, 0], [0, 1, 1]], [[1, 0, 0], [0, 1, 0], [1, 0, 1]]], np.bool_
)
_STARTS = np.array([[0, 1, 3, 5], [0, 1, 2, 4]], np.int32)
_COLUMNS = np.array([[0, 0, 1, 1, 2], [0, 1, 0, 2, -1]], np.int32)


def _sparse(name: str, rows: int, totals: list[int]) -> ContribCase:
    """``rows`` new ones of each sample, all of them or behind a past."""
    groups, batch = 2, len(totals)
    q, k, v = (drawn(batch, rows, n * _D, seed=n) for n in (_H, groups, 3))
    v = v[..., : groups * _D].copy()
    caches = [drawn(batch, groups, _BUFFER, _D, seed=seed) for seed in (8, 9)]
    presents = [np.zeros_like(cache) for cache in caches]
    results: list[Array] = []
    for b, total in enumerate(totals):
        past = total - rows
        for present, cache, new in zip(presents, caches, (k, v), strict=True):
            present[b, :, :past] = cache[b, :, :past]
            present[b, :, past:total] = heads_of(new, groups)[b]
        places: Array = np.arange(past, total)[:, None]
        keys: Array = np.arange(total)
        seen = _BLOCKS[:, places // _BLOCK, keys // _BLOCK] & (keys <= places)
        added = np.where(np.tile(seen, (_H // 2, 1, 1)), 0.0, -np.inf)
        own = [present[b : b + 1, :, :total] for present in presents]
        results.append(attention(scores_of(heads_of(q[b : b + 1], _H), own[0]), own[1], added))
    lengths = [np.array([max(totals)], np.int32), np.array(totals, np.int32)]
    return ContribCase(
        f"SparseAttention {name}",
        "SparseAttention",
        [q, k, v, *caches, _STARTS, _COLUMNS, *lengths],
        [np.concatenate(results), *presents],
        {"num_heads": _H, "kv_num_heads": groups, "sparse_block_size": _BLOCK},
        constant=(5, 6),
        is_numpy_only=True,  # ONNX Runtime wants past and present in one buffer.
    )


_BLOCKWISE = [
    _sparse("prompt", 40, [40, 40]),
    _sparse("tokens", 1, [41, 18]),
    _sparse("tokens of a short text", 1, [3, 2]),
]
CASES = [*_TOKENS, *_LOOPS, *_BLOCKWISE]
