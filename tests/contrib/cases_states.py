"""Ops of com.microsoft for layers that keep a state of one size, and what stands around them.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import numpy as np
from tests.contrib.cases_elementwise import sigmoid
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32


def _convolved(
    x: Array, weights: Array, bias: Array | None, past: Array, dilation: int
) -> tuple[Array, Array]:
    """x [B, C, L] behind ``past``, each channel by its own taps; the last elements."""
    joined, taps = np.concatenate([past, x], 2), weights.shape[2]
    result = np.zeros(x.shape)
    for tap in range(taps):
        start = tap * dilation
        result += joined[:, :, start : start + x.shape[2]] * weights[None, :, 0, tap, None]
    if bias is not None:
        result += bias[None, :, None]
    return f32(result), joined[:, :, joined.shape[2] - past.shape[2] :]


def _convolution(
    name: str,
    length: int,
    *,
    dilation: int = 1,
    has_past: bool = True,
    is_last: bool = False,
    activation: str = "none",
) -> ContribCase:
    channels, taps = 6, 4
    x, weights, bias = drawn(2, channels, length), drawn(channels, 1, taps), drawn(channels)
    kept = (taps - 1) * dilation
    past = drawn(2, channels, kept, seed=5) if has_past else np.zeros((2, channels, kept), "f")
    result, last = _convolved(x, weights, bias, past, dilation)
    if activation != "none":
        result = f32(result * sigmoid(result))
    arrays = [x, past, result, last]
    if is_last:
        arrays = [np.ascontiguousarray(each.transpose(0, 2, 1)) for each in arrays]
    return ContribCase(
        f"CausalConvWithState {name}",
        "CausalConvWithState",
        [arrays[0], weights, bias, arrays[1] if has_past else None],
        arrays[2:],
        {"activation": activation, "channels_last": int(is_last), "dilation": dilation},
        constant=(1, 2),
    )


def _attended(
    q: Array, k: Array, v: Array, decay: Array, beta: Array, state: Array, *, corrects: bool
) -> tuple[Array, Array]:
    """Tokens one by one; heads of q and k repeated for those of the state."""
    last, heads = state.astype(np.float64), v.shape[2]
    results: list[Array] = []
    k = np.repeat(k, heads // k.shape[2], 2)
    q = np.repeat(q, max(1, heads // q.shape[2]), 2)
    for token in range(v.shape[1]):
        last = last * decay[:, token]
        change = v[:, token]
        if corrects:
            found = (k[:, token, :, :, None] * last).sum(2)
            change = beta[:, token, :, None] * (change - found)
        last = last + k[:, token, :, :, None] * change[:, :, None]
        seen = np.repeat(last, q.shape[2] // heads, 1)
        results.append((q[:, token, :, :, None] * seen).sum(2))
    return np.stack(results, 1), f32(last)


def _attention(
    rule: str, heads: tuple[int, int, int], *, by_row: bool = False, has_past: bool = True
) -> ContribCase:
    """``heads``: of queries, keys and states; ``by_row``: each row of a state decays by itself."""
    batch, tokens, depth, columns = 2, 5, 8, 12
    queries, keys, count = heads
    q, k = drawn(batch, tokens, queries, depth), drawn(batch, tokens, keys, depth, seed=1)
    k = f32(k / np.sqrt((k * k).sum(-1, keepdims=True)))
    v = drawn(batch, tokens, count, columns, seed=2)
    of_decay = (count, depth) if by_row else (count,)
    logarithms = -abs(drawn(batch, tokens, *of_decay, seed=3))
    beta = sigmoid(drawn(batch, tokens, count, seed=4))
    past = drawn(batch, count, depth, columns, seed=5) if has_past else None
    state = np.zeros((batch, count, depth, columns)) if past is None else past
    decay = np.exp(logarithms) if "gated" in rule else np.ones_like(logarithms)
    wide = decay.reshape(batch, tokens, count, depth if by_row else 1, 1)
    result, last = _attended(q, k, v, wide, beta, state, corrects="delta" in rule)
    flat = [each.reshape(batch, tokens, -1) for each in (q, k, v, logarithms)]
    told = f"{rule}, heads {queries}, {keys} and {count}"
    told += ", decays of rows" * by_row + ", from the beginning" * (not has_past)
    return ContribCase(
        f"LinearAttention {told}",
        "LinearAttention",
        [
            *flat[:3],
            past,
            flat[3] if "gated" in rule else None,
            beta if "delta" in rule else None,
        ],
        [f32(result / np.sqrt(depth)).reshape(batch, tokens, -1), last],
        {"q_num_heads": queries, "kv_num_heads": count, "update_rule": rule},
        tolerance=2e-5,
        needs_sizes=True,
    )


_A, _B, _SCALE = drawn(2, 3, 4), drawn(2, 3, 4, seed=1), drawn(4)
_DECAY, _OPEN = f32(-abs(drawn(4, seed=2)) * np.log1p(np.exp(_A + _SCALE))), f32(sigmoid(_B))
_GATES = [
    ContribCase(
        "LinearAttentionGate", "LinearAttentionGate",
        [_A, _SCALE, -abs(drawn(4, seed=2)), _B], [_DECAY, _OPEN],
    ),
    ContribCase(
        "LinearAttentionGate of decays alone", "LinearAttentionGate",
        [_A, _SCALE, -abs(drawn(4, seed=2))], [_DECAY],
    ),
    ContribCase(
        "GatedAdd", "GatedAdd", [_A, _B, drawn(2, 3, 1)], [f32(_A + _B * drawn(2, 3, 1))]
    ),
    ContribCase("ScaledSiLU", "ScaledSiLU", [_A], [f32(0.5 * _A * sigmoid(0.5 * _A))], {"alpha": 0.5}),
    ContribCase(
        "ScaledSiLU by an operand", "ScaledSiLU",
        [_A, f32(0.5)], [f32(0.5 * _A * sigmoid(0.5 * _A))],
    ),
]  # fmt: skip


def _norm(activation: str) -> ContribCase:
    x, gate, scale = drawn(2, 3, 12), drawn(2, 3, 12, seed=1), drawn(4)
    groups = x.reshape(2, 3, 3, 4).astype(np.float64)
    normal = groups / np.sqrt((groups**2).mean(-1, keepdims=True) + 1e-5) * scale
    opened = sigmoid(gate) * (1 if activation == "sigmoid" else gate)
    return ContribCase(
        f"GatedRMSNorm {activation}",
        "GatedRMSNorm",
        [x, scale, gate],
        [f32(normal.reshape(x.shape) * opened)],
        {"activation": activation},
        constant=(1,),
        needs_sizes=True,
    )


def _rotated(layout: int, *, is_flat: bool) -> ContribCase:
    """Three positions of each token; the columns of the tables are one's each."""
    sections, heads, size = (3, 2, 1), 2, 16
    half = sum(sections)
    angles = np.arange(20)[:, None] / 10.0 ** np.arange(half)
    positions = np.random.default_rng(1).integers(0, 20, (3, 2, 5))
    streams = (
        np.repeat(np.arange(3), sections)
        if layout == 0
        else np.array([c % 3 if c < 3 * sections[c % 3] else 0 for c in range(half)])
    )
    own = angles[positions][streams, :, :, np.arange(half)].transpose(1, 2, 0)[:, None]
    x = drawn(2, heads, 5, size)
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    turned = f32(np.concatenate([
        first * np.cos(own) - second * np.sin(own), first * np.sin(own) + second * np.cos(own), rest
    ], -1))  # fmt: skip
    if is_flat:
        x, turned = (each.transpose(0, 2, 1, 3).reshape(2, 5, -1) for each in (x, turned))
    return ContribCase(
        f"MRotaryEmbedding, layout {layout}{', heads together' if is_flat else ''}",
        "MRotaryEmbedding",
        [np.ascontiguousarray(x), positions, f32(np.cos(angles)), f32(np.sin(angles))],
        [np.ascontiguousarray(turned)],
        {
            "mrope_section": sections,
            "mrope_layout": layout,
            "num_heads": heads,
            "rotary_embedding_dim": 2 * half,
        },
        constant=(2, 3),
        needs_sizes=True,
    )


CASES: list[ContribCase] = [
    _convolution("of a prompt", 9),
    _convolution("of a token", 1, activation="silu"),
    _convolution("from the beginning", 5, has_past=False),
    _convolution("with dilation", 7, dilation=2),
    _convolution("channels last", 5, is_last=True, activation="swish"),
    *(_attention(rule, (2, 2, 2)) for rule in ("linear", "gated", "delta", "gated_delta")),
    _attention("gated_delta", (2, 2, 4)),
    _attention("gated_delta", (2, 2, 2), by_row=True),
    _attention("gated", (4, 2, 2), has_past=False),
    *_GATES,
    *map(_norm, ("silu", "sigmoid")),
    *(_rotated(layout, is_flat=is_flat) for layout in (0, 1) for is_flat in (False, True)),
]
