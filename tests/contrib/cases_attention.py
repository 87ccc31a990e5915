"""Attention ops of com.microsoft.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

LOWEST = float(np.finfo(np.float32).min)
_B, _S, _H, _D = 2, 3, 4, 16


def heads_of(x: Array, heads: int) -> Array:
    """[B, S, heads * D] as [B, heads, S, D]."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def merged(x: Array) -> Array:
    """[B, heads, S, D] as [B, S, heads * D]."""
    return f32(x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1))


def softmax(scores: Array, sink: Array | None = None) -> Array:
    """Over the last axis, where a sink takes a part."""
    top = scores.max(-1, keepdims=True)
    top = top if sink is None else np.maximum(top, sink)
    powers = np.exp(scores - top)
    extra = 0 if sink is None else np.exp(sink - top)
    return np.asarray(powers / (powers.sum(-1, keepdims=True) + extra))


def scores_of(q: Array, k: Array, scale: float | None = None) -> Array:
    """scale * q k' per head; fewer heads of k are repeated."""
    wide = np.repeat(k, q.shape[1] // k.shape[1], 1).astype(np.float64)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return np.asarray(q.astype(np.float64) @ wide.swapaxes(2, 3) * factor)


def attention(scores: Array, v: Array, added: Any = 0.0, sink: Array | None = None) -> Array:
    """softmax(scores + added) v per head, merged."""
    wide = np.repeat(v, scores.shape[1] // v.shape[1], 1)
    return merged(softmax(scores + added, sink) @ wide)


def _causal(rows: int, keys: int, filler: float = LOWEST) -> Array:
    return np.where(np.tri(rows, keys, keys - rows, dtype=np.bool_), 0.0, filler)


_Q, _K, _V = drawn(_B, _S, 64), drawn(_B, _S, 64, seed=1), drawn(_B, _S, 64, seed=2)
_QH, _KH, _VH = (heads_of(x, _H) for x in (_Q, _K, _V))
_PLAIN = scores_of(_QH, _KH)
_HEADS = {"num_heads": _H}
_BIAS = drawn(192, seed=3)
_BIASED = [heads_of(x + b, _H) for x, b in zip((_Q, _K, _V), np.split(_BIAS, 3), strict=True)]
_PAST_K, _PAST_V = drawn(_B, _H, 5, _D, seed=4), drawn(_B, _H, 5, _D, seed=5)
_ALL_K, _ALL_V = np.concatenate([_PAST_K, _KH], 2), np.concatenate([_PAST_V, _VH], 2)
_ADDED = drawn(1, _H, _S, _S, seed=6)
_KEPT = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
_KEPT_ROWS = np.array([[[1, 0, 0], [1, 1, 0], [0, 1, 1]]] * 2, np.int32)
_ENDS = np.array([2, 3], np.int32)
_PACKED = np.stack([x.reshape(_B, _S, _H, _D) for x in (_Q, _K, _V)], 3)
_LONG_K, _LONG_V = drawn(_B, 6, 64, seed=7), drawn(_B, 6, 96, seed=8)


def _filled(kept: Array, filler: float = -10000.0) -> Array:
    return np.where(kept > 0, 0.0, filler)


def _multi(
    name: str, operands: list[Array | None], expected: list[Array | None], **attributes: Any
) -> ContribCase:
    return ContribCase(
        f"MultiHeadAttention {name}",
        "MultiHeadAttention",
        operands,
        expected,
        {**_HEADS, **attributes},
        is_numpy_only="packed" in name,
    )


_MULTI = [
    _multi("plain", [_Q, _K, _V], [attention(_PLAIN, _VH)]),
    _multi("scale", [_Q, _K, _V], [attention(scores_of(_QH, _KH, 0.5), _VH)], scale=0.5),
    _multi("bias", [_Q, _K, _V, _BIAS], [attention(scores_of(_BIASED[0], _BIASED[1]), _BIASED[2])]),
    _multi("packed", [_PACKED], [attention(_PLAIN, _VH)]),
    _multi("packed keys and values", [_Q, _PACKED[:, :, :, 1:].copy()], [attention(_PLAIN, _VH)]),
    _multi("keys and values per head", [_Q, _KH, _VH], [attention(_PLAIN, _VH)]),
    _multi(
        "other lengths",
        [_Q, _LONG_K, _LONG_V],
        [attention(scores_of(_QH, heads_of(_LONG_K, _H)), heads_of(_LONG_V, _H))],
    ),
    _multi(
        "unidirectional", [_Q, _K, _V], [attention(_PLAIN, _VH, _causal(3, 3))], unidirectional=1
    ),
    _multi(
        "mask of keys",
        [_Q, _K, _V, None, _KEPT],
        [attention(_PLAIN, _VH, _filled(_KEPT)[:, None, None])],
    ),
    _multi(
        "mask of pairs, causal",
        [_Q, _K, _V, None, _KEPT_ROWS],
        [attention(_PLAIN, _VH, _filled(_KEPT_ROWS, -5.0)[:, None] + _causal(3, 3))],
        unidirectional=1,
        mask_filter_value=-5.0,
    ),
    _multi(
        "lengths of keys",
        [_Q, _K, _V, None, _ENDS],
        [attention(_PLAIN, _VH, _filled(_KEPT)[:, None, None])],
    ),
    _multi("bias of scores", [_Q, _K, _V, None, None, _ADDED], [attention(_PLAIN, _VH, _ADDED)]),
    _multi(
        "past",
        [_Q, _K, _V, None, None, None, _PAST_K, _PAST_V],
        [attention(scores_of(_QH, _ALL_K), _ALL_V, _causal(3, 8)), _ALL_K, _ALL_V],
        unidirectional=1,
    ),
    _multi("scores", [_Q, _K, _V], [attention(_PLAIN, _VH), None, None, f32(_PLAIN)]),
]

_X, _W = drawn(_B, _S, 6, seed=9), drawn(6, 192, seed=10, scale=0.3)
_PROJECTED = np.split(_X @ _W + _BIAS, 3, -1)
_PQ, _PK, _PV = (heads_of(x, _H) for x in _PROJECTED)
_PROJECTED_SCORES = scores_of(_PQ, _PK)
_PAST = np.stack([_PAST_K, _PAST_V])
_PRESENT = np.concatenate([_PAST, np.stack([_PK, _PV])], 3)
_NARROW = drawn(6, 32 + 32 + 64, seed=11, scale=0.3)
_NARROW_BIAS = drawn(128, seed=17)
_NQ, _NK, _NV = (heads_of(x, _H) for x in np.split(_X @ _NARROW + _NARROW_BIAS, [32, 64], -1))
_ENDS_AND_STARTS = np.array([3, 2, 1, 0], np.int32)
_WITHIN = np.array([[0, 1, 1], [1, 1, 0]])


def _fused(
    name: str, operands: list[Array | None], expected: list[Array | None], **attributes: Any
) -> ContribCase:
    return ContribCase(
        f"Attention {name}",
        "Attention",
        operands,
        expected,
        {**_HEADS, **attributes},
        constant=(1, 2),
    )


_FUSED = [
    _fused("plain", [_X, _W, _BIAS], [attention(_PROJECTED_SCORES, _PV)]),
    _fused(
        "sizes of q, k, v",
        [_X, _NARROW, _NARROW_BIAS],
        [attention(scores_of(_NQ, _NK), _NV)],
        qkv_hidden_sizes=[32, 32, 64],
    ),
    _fused(
        "unidirectional with a past",
        [_X, _W, _BIAS, None, _PAST],
        [attention(scores_of(_PQ, _PRESENT[0]), _PRESENT[1], _causal(3, 8)), f32(_PRESENT)],
        unidirectional=1,
    ),
    _fused(
        "present without a past",
        [_X, _W, _BIAS],
        [attention(_PROJECTED_SCORES, _PV), f32(np.stack([_PK, _PV]))],
    ),
    _fused(
        "mask of keys, causal",
        [_X, _W, _BIAS, _KEPT],
        [attention(_PROJECTED_SCORES, _PV, _filled(_KEPT)[:, None, None] + _causal(3, 3))],
        unidirectional=1,
    ),
    _fused(
        "mask of pairs",
        [_X, _W, _BIAS, _KEPT_ROWS],
        [attention(_PROJECTED_SCORES, _PV, _filled(_KEPT_ROWS)[:, None])],
    ),
    _fused(
        "ends",
        [_X, _W, _BIAS, _ENDS],
        [attention(_PROJECTED_SCORES, _PV, _filled(_KEPT)[:, None, None])],
    ),
    _fused(
        "ends and starts",
        [_X, _W, _BIAS, _ENDS_AND_STARTS],
        [attention(_PROJECTED_SCORES, _PV, _filled(_WITHIN)[:, None, None])],
    ),
    _fused(
        "bias of scores",
        [_X, _W, _BIAS, None, None, _ADDED],
        [attention(_PROJECTED_SCORES, _PV, _ADDED)],
    ),
]

_ANGLES = np.outer(np.arange(16), 10000.0 ** -(np.arange(8) / 8))
_COS, _SIN = f32(np.cos(_ANGLES)), f32(np.sin(_ANGLES))


def rotate(x: Array, positions: Array, *, interleaved: bool = False, width: int = 16) -> Array:
    """x[B, heads, S, D] turned by its positions [B, S]; elements behind ``width`` stay."""
    half = width // 2
    cos, sin = _COS[positions, :half][:, None], _SIN[positions, :half][:, None]
    turned, rest = x[..., :width], x[..., width:]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        pair = np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(turned.shape)
    else:
        a, b = turned[..., :half], turned[..., half:]
        pair = np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
    return f32(np.concatenate([pair, rest], -1))


_PLACES = np.array([[0, 1, 2], [4, 5, 6]])
_OFFSETS = np.array([[2, 3, 4]] * 2)
_ROTARY = [
    ContribCase(
        "RotaryEmbedding", "RotaryEmbedding", [_QH, _PLACES, _COS, _SIN], [rotate(_QH, _PLACES)]
    ),
    ContribCase(
        "RotaryEmbedding of three dimensions",
        "RotaryEmbedding",
        [_Q, _PLACES, _COS, _SIN],
        [merged(rotate(_QH, _PLACES))],
    ),
    ContribCase(
        "RotaryEmbedding interleaved from an offset",
        "RotaryEmbedding",
        [_QH, np.array([2]), _COS, _SIN],
        [rotate(_QH, _OFFSETS, interleaved=True)],
        {"interleaved": 1},
    ),
    ContribCase(
        "RotaryEmbedding of a part",
        "RotaryEmbedding",
        [_Q, _PLACES, _COS[:, :4].copy(), _SIN[:, :4].copy()],
        [merged(rotate(_QH, _PLACES, width=8))],
        {"num_heads": _H, "rotary_embedding_dim": 8},
    ),
]

_GK, _GV = drawn(_B, _S, 32, seed=12), drawn(_B, _S, 32, seed=13)
_GKH, _GVH = heads_of(_GK, 2), heads_of(_GV, 2)
_GROUPS = {"num_heads": _H, "kv_num_heads": 2}
_GPAST_K, _GPAST_V = drawn(_B, 2, 5, _D, seed=14), drawn(_B, 2, 5, _D, seed=15)


def _grouped(
    name: str,
    operands: list[Array | None],
    expected: list[Array | None],
    *,
    constant: tuple[int, ...] = (),
    is_numpy_only: bool = False,
    **attributes: Any,
) -> ContribCase:
    return ContribCase(
        f"GroupQueryAttention {name}",
        "GroupQueryAttention",
        operands,
        expected,
        {**_GROUPS, **attributes},
        constant=constant,
        is_numpy_only=is_numpy_only,
    )


def _lengths(each: int, longest: int | None = None) -> list[Array | None]:
    return [np.full(_B, each - 1, np.int32), np.array(longest or each, np.int32)]


def _decoded(
    q: Array,
    k: Array,
    v: Array,
    past: int,
    *,
    window: int = 0,
    cap: float = 0.0,
    sink: Array | None = None,
    added: Any = 0.0,
    scale: float | None = None,
) -> Array:
    """What queries behind ``past`` keys see, at most ``window`` of them."""
    rows, keys = np.arange(q.shape[2])[:, None] + past, np.arange(k.shape[2])
    kept = (keys <= rows) & ((keys > rows - window) if window else True)
    scores = scores_of(q, k, scale)
    scores = cap * np.tanh(scores / cap) if cap else scores
    return attention(scores, v, np.where(kept, 0.0, -np.inf) + added, sink)


_ONE = [x[:, -1:].copy() for x in (_Q, _GK, _GV)]
_ONE_HEADS = [heads_of(x, heads) for x, heads in zip(_ONE, (4, 2, 2), strict=True)]
_NEXT_K = np.concatenate([_GPAST_K, _ONE_HEADS[1]], 2)
_NEXT_V = np.concatenate([_GPAST_V, _ONE_HEADS[2]], 2)
_MORE_K, _MORE_V = np.concatenate([_GPAST_K, _GKH], 2), np.concatenate([_GPAST_V, _GVH], 2)
_SINKS = drawn(_H, seed=16)
_EMPTY: list[Array | None] = [None, None]
_PROMPT: list[Array | None] = [_Q, _GK, _GV, *_EMPTY, *_lengths(3)]
_STEP: list[Array | None] = [*_ONE, _GPAST_K, _GPAST_V, *_lengths(6)]
_AT_5 = np.array([[5]] * 2)
_TURNED_K = np.concatenate([_GPAST_K, rotate(_ONE_HEADS[1], _AT_5)], 2)
_FROM_0 = np.array([[0, 1, 2]] * 2)
_ROTATED_Q, _ROTATED_K = rotate(_QH, _FROM_0), rotate(_GKH, _FROM_0)
_RAGGED_PAST_K, _RAGGED_PAST_V = _GPAST_K.copy(), _GPAST_V.copy()
_RAGGED_K, _RAGGED_V = np.zeros((2, _B, 2, 6, _D), np.float32)
for _sample, _held in enumerate((5, 3)):
    for _all, _before, _new in (
        (_RAGGED_K, _GPAST_K, _ONE_HEADS[1]),
        (_RAGGED_V, _GPAST_V, _ONE_HEADS[2]),
    ):
        _all[_sample, :, :_held] = _before[_sample, :, :_held]
        _all[_sample, :, _held] = _new[_sample, :, 0]
_RAGGED = np.concatenate(
    [
        _decoded(
            _ONE_HEADS[0][s : s + 1],
            _RAGGED_K[s : s + 1, :, : n + 1],
            _RAGGED_V[s : s + 1, :, : n + 1],
            n,
        )
        for s, n in enumerate((5, 3))
    ]
)
_GROUPED = [
    _grouped("prompt", _PROMPT, [_decoded(_QH, _GKH, _GVH, 0), _GKH, _GVH]),
    _grouped("step", _STEP, [_decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5), _NEXT_K, _NEXT_V]),
    _grouped(
        "step of a known total",
        _STEP,
        [_decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5), _NEXT_K, _NEXT_V],
        constant=(5, 6),
    ),
    _grouped(
        "samples of different lengths",
        [*_ONE, _GPAST_K, _GPAST_V, np.array([5, 3], np.int32), np.array(6, np.int32)],
        [_RAGGED, _RAGGED_K, _RAGGED_V],
    ),
    _grouped(
        "window and scale",
        _STEP,
        [_decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5, window=3, scale=0.5), _NEXT_K, _NEXT_V],
        local_window_size=3,
        scale=0.5,
    ),
    _grouped(
        "window in a prompt",
        _PROMPT,
        [_decoded(_QH, _GKH, _GVH, 0, window=2), _GKH, _GVH],
        local_window_size=2,
    ),
    _grouped(
        "softcap",
        _STEP,
        [_decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5, cap=0.5), _NEXT_K, _NEXT_V],
        softcap=0.5,
    ),
    _grouped(
        "smooth softmax",
        _STEP,
        [_decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5, sink=np.zeros(1)), _NEXT_K, _NEXT_V],
        smooth_softmax=1,
    ),
    _grouped(
        "sinks",
        [*_STEP, None, None, None, None, _SINKS],
        [
            _decoded(_ONE_HEADS[0], _NEXT_K, _NEXT_V, 5, sink=_SINKS[:, None, None]),
            _NEXT_K,
            _NEXT_V,
        ],
    ),
    _grouped(
        "rotation in a prompt",
        [*_PROMPT, _COS, _SIN],
        [_decoded(_ROTATED_Q, _ROTATED_K, _GVH, 0), _ROTATED_K, _GVH],
        do_rotary=1,
    ),
    _grouped(
        "rotation in a step",
        [*_STEP, _COS, _SIN],
        [_decoded(rotate(_ONE_HEADS[0], _AT_5), _TURNED_K, _NEXT_V, 5), _TURNED_K, _NEXT_V],
        do_rotary=1,
    ),
    _grouped(
        "interleaved rotation at given places",
        [*_STEP, _COS, _SIN, np.array([[5], [5]])],
        [
            _decoded(
                rotate(_ONE_HEADS[0], _AT_5, interleaved=True),
                np.concatenate([_GPAST_K, rotate(_ONE_HEADS[1], _AT_5, interleaved=True)], 2),
                _NEXT_V,
                5,
            ),
            np.concatenate([_GPAST_K, rotate(_ONE_HEADS[1], _AT_5, interleaved=True)], 2),
            _NEXT_V,
        ],
        do_rotary=1,
        rotary_interleaved=1,
    ),
    _grouped(
        "packed",
        [np.concatenate([_Q, _GK, _GV], -1), None, None, *_EMPTY, *_lengths(3)],
        [_decoded(_QH, _GKH, _GVH, 0), _GKH, _GVH],
    ),
    _grouped(
        "bias of scores",
        [*_PROMPT, None, None, None, _ADDED],
        [_decoded(_QH, _GKH, _GVH, 0, added=_ADDED), _GKH, _GVH],
    ),
    _grouped(
        "both directions",
        _PROMPT,
        [attention(scores_of(_QH, _GKH), _GVH), _GKH, _GVH],
        causal=0,
    ),
]
_MORE = ContribCase(
    "GroupQueryAttention several new rows behind a past",
    "GroupQueryAttention",
    [
        _Q[:1],
        _GK[:1],
        _GV[:1],
        _GPAST_K[:1],
        _GPAST_V[:1],
        np.array([7], np.int32),
        np.array(8, np.int32),
    ],
    [_decoded(_QH[:1], _MORE_K[:1], _MORE_V[:1], 5), _MORE_K[:1], _MORE_V[:1]],
    _GROUPS,
)
CASES = [*_MULTI, *_FUSED, *_ROTARY, *_GROUPED, _MORE]
