"""Mixtures of experts of com.microsoft.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from tests.contrib.cases_elementwise import sigmoid, tanh_gelu
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_EXPERTS, _DEPTH, _INNER = 5, 32, 48
_ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": tanh_gelu,
    "silu": lambda x: x * sigmoid(x),
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class _Layer:
    """The matrices [E, N, K] and biases [E, N] of one product."""

    weights: Array
    bias: Array

    def of(self, expert: int, x: Array) -> Array:
        return np.asarray(self.weights[expert].astype(np.float64) @ x + self.bias[expert])


def _swiglu(
    first: Array, second: Array, alpha: float = 1, beta: float = 0, limit: float = np.inf
) -> Array:
    first, second = np.minimum(first, limit), np.clip(second, -limit, limit)
    return first * sigmoid(alpha * first) * (second + beta)


def _mixed(
    x: Array, experts: Array, shares: Array, inner: Callable[[int, Array], Array], last: _Layer
) -> Array:
    """The results of each token's experts by their shares."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    result = np.zeros((len(rows), last.weights.shape[1]))
    for token, row in enumerate(rows):
        for expert, share in zip(experts[token], shares[token], strict=True):
            result[token] += share * last.of(expert, inner(expert, row))
    return f32(result.reshape(*x.shape[:-1], -1))


def _chosen(scores: Array, count: int) -> Array:
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def _softmax(x: Array) -> Array:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def _layer(rows: int, depth: int, seed: int) -> _Layer:
    return _Layer(drawn(_EXPERTS, rows, depth, seed=seed), drawn(_EXPERTS, rows, seed=seed + 1))


_X, _SCORES = drawn(2, 7, _DEPTH), drawn(14, _EXPERTS, seed=1)
_FIRST, _LAST, _SECOND = (
    _layer(*sizes) for sizes in ((_INNER, _DEPTH, 2), (_DEPTH, _INNER, 4), (_INNER, _DEPTH, 6))
)


def _plain(activation: str, count: int, *, normalizes: bool, constant: bool = True) -> ContribCase:
    experts, shares = _chosen(_SCORES, count), _softmax(_SCORES)
    shares = np.take_along_axis(shares, experts, 1)
    if normalizes:
        shares = shares / shares.sum(1, keepdims=True)

    def inner(expert: int, row: Array) -> Array:
        return _ACTIVATIONS[activation](_FIRST.of(expert, row))

    attributes = {
        "activation_type": activation,
        "k": count,
        "normalize_routing_weights": int(normalizes),
    }
    name = f"{activation}, {count} of {_EXPERTS}{', as they are' if not normalizes else ''}"
    return ContribCase(
        f"MoE {name}{'' if constant else ', weights at run time'}",
        "MoE",
        [_X, _SCORES, _FIRST.weights, _FIRST.bias, _LAST.weights, _LAST.bias],
        [_mixed(_X, experts, shares, inner, _LAST)],
        attributes,
        constant=(2, 3, 4, 5) if constant else (),
    )


def _gated(fusion: int, activation: str = "swiglu", **numbers: float) -> ContribCase:
    """``swiglu`` or ``geglu`` by one product of both factors, or by two."""
    experts = _chosen(_SCORES, 2)
    shares = _softmax(np.take_along_axis(_SCORES, experts, 1))

    def inner(expert: int, row: Array) -> Array:
        named = {key.rpartition("_")[2]: number for key, number in numbers.items()}
        gate, factor = _FIRST.of(expert, row), _SECOND.of(expert, row)
        if activation == "geglu":
            return np.asarray(tanh_gelu(gate) * factor)
        return _swiglu(gate, factor, **named)

    first, second = (_FIRST.weights, _FIRST.bias), (_SECOND.weights, _SECOND.bias)
    joined = [
        np.stack(pair, 2).reshape(_EXPERTS, 2 * _INNER, *pair[0].shape[2:])
        if fusion == 1
        else np.concatenate(pair, 1)
        for pair in zip(first, second, strict=True)
    ]
    others = second if fusion == 0 else ()
    operands = [*(joined if fusion else first), _LAST.weights, _LAST.bias, *others]
    attributes = {"activation_type": activation, "k": 2, "swiglu_fusion": fusion, **numbers}
    return ContribCase(
        f"MoE {activation}, fusion {fusion}{', with limits' if numbers else ''}",
        "MoE",
        [_X[0], _SCORES[:7], *operands],
        [_mixed(_X[0], experts, shares, inner, _LAST)],
        {**attributes, "normalize_routing_weights": 1},
        constant=tuple(range(2, 2 + len(operands))),
        is_numpy_only=fusion != 1 or activation == "geglu",
    )


@dataclass(frozen=True)
class _Numbers:
    """A matrix of integers: its bytes, scales, zero points (None: the middle), and what they are."""

    numbers: Array
    scales: Array
    zeros: Array | None
    weights: Array


def _packed(codes: Array, bits: int) -> Array:
    """Pairs along the last axis in a byte; zeros behind an odd number."""
    if bits == 8:
        return codes
    even = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)])
    return np.asarray(even[..., ::2] | even[..., 1::2] << 4)


def _numbers(
    rows: int, depth: int, bits: int, block: int, seed: int, *, has_zeros: bool
) -> _Numbers:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << bits, (_EXPERTS, rows, depth)).astype(np.uint8)
    shape = (_EXPERTS, rows, depth // block) if block else (_EXPERTS, rows)
    scales = (rng.uniform(0.2, 1, shape) / (1 << bits)).astype(np.float32)
    zeros = rng.integers(0, 1 << bits, shape).astype(np.uint8) if has_zeros else None
    middle = np.full(shape, 1 << (bits - 1)) if zeros is None else zeros
    each = [np.repeat(part[..., None], block or depth, -1) for part in (middle, scales)]
    offset, factor = (part.reshape(codes.shape) for part in each)
    weights = (codes.astype(np.float64) - offset) * factor
    packed = None if zeros is None else _packed(zeros, bits)
    return _Numbers(_packed(codes, bits), scales, packed, weights)


def _quantized(
    bits: int, block: int, *, has_zeros: bool = False, has_mixing: bool = False
) -> ContribCase:
    scores, count = _SCORES[:7], 2
    first = _numbers(2 * _INNER, _DEPTH, bits, block, 11, has_zeros=has_zeros)
    last = _numbers(_DEPTH, _INNER, bits, block, 12, has_zeros=has_zeros)
    bias, last_bias = drawn(_EXPERTS, 2 * _INNER, seed=13), drawn(_EXPERTS, _DEPTH, seed=14)
    experts = _chosen(scores, count)
    mixing = abs(drawn(7, _EXPERTS, seed=15)) if has_mixing else None
    of_chosen = np.take_along_axis(scores if mixing is None else mixing, experts, 1)
    shares = _softmax(of_chosen) if mixing is None else of_chosen

    def inner(expert: int, row: Array) -> Array:
        both = first.weights[expert] @ row + bias[expert]
        return _swiglu(both[::2], both[1::2])

    weights = [first.numbers, first.scales, bias, last.numbers, last.scales, last_bias]
    zeros = [first.zeros, last.zeros, None]
    attributes: dict[str, str | int] = {
        "activation_type": "swiglu",
        "swiglu_fusion": 1,
        "k": count,
        "expert_weight_bits": bits,
    }
    if block:
        attributes["block_size"] = block
    told = [f"{bits} bits", f"blocks of {block}" if block else "columns"]
    told += ["with zero points"] * has_zeros + ["with other shares"] * has_mixing
    return ContribCase(
        f"QMoE {', '.join(told)}",
        "QMoE",
        [_X[0], scores, *weights, None, None, None, *zeros, mixing],
        [_mixed(_X[0], experts, shares, inner, _Layer(last.weights, last_bias))],
        attributes,
        constant=(*range(2, 8), 11, 12),
        # There bytes in blocks are multiplied by activations of 8 bits.
        is_numpy_only=bits == 8 and block > 0,
    )


CASES: list[ContribCase] = [
    *(_plain(name, 2, normalizes=True) for name in _ACTIVATIONS),
    _plain("silu", 3, normalizes=False),
    _plain("silu", 1, normalizes=False, constant=False),
    *(_gated(fusion) for fusion in (0, 1, 2)),
    *(_gated(fusion, "geglu") for fusion in (1, 2)),
    _gated(1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.75),
    *(_quantized(bits, block) for bits in (4, 8) for block in (0, 16)),
    *(_quantized(4, block, has_zeros=True) for block in (0, 16)),
    _quantized(8, 0, has_zeros=True),
    _quantized(4, 16, has_mixing=True),
]
