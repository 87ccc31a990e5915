"""Ops of ONNX Runtime for layers of decoders other than attention over keys: models with inputs.

In: nothing. Out: ``DECODERS`` by name. Not done here: whole decoders (``bench_decode``), measuring
(``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import numpy_helper
from tests.benchmarks.single_node import Array, Case, normal, one, random

_DOMAIN = "com.microsoft"
_FLOAT = 1


def _mixture(tokens: int, experts: int, depth: int, inner: int, chosen: int) -> Callable[[], Case]:
    """Experts with weights of f32, gated by SwiGLU."""

    def case() -> Case:
        inputs = {"x": normal(tokens, depth), "scores": normal(tokens, experts)}
        weights = {
            "first": normal(experts, 2 * inner, depth) / np.float32(depth**0.5),
            "first_bias": normal(experts, 2 * inner),
            "last": normal(experts, depth, inner) / np.float32(inner**0.5),
            "last_bias": normal(experts, depth),
        }
        return one(
            "MoE", inputs, weights, domain=_DOMAIN, k=chosen, activation_type="swiglu",
            swiglu_fusion=1, normalize_routing_weights=1,
        )()  # fmt: skip

    return case


def _mixture_in_blocks(
    tokens: int, experts: int, depth: int, inner: int, chosen: int, *, level: int = 0
) -> Callable[[], Case]:
    """The same with weights of 4 bits in blocks of 32."""

    def numbers(rows: int, size: int) -> dict[str, Array]:
        codes = random(rows).integers(0, 256, (experts, rows, size // 2)).astype(np.uint8)
        scales = random(size).uniform(0.001, 0.01, (experts, rows, size // 32))
        return {f"codes{rows}": codes, f"scales{rows}": scales.astype(np.float32)}

    def case() -> Case:
        inputs = {"x": normal(tokens, depth), "scores": normal(tokens, experts)}
        weights = {
            **numbers(2 * inner, depth), "first_bias": normal(experts, 2 * inner),
            **numbers(depth, inner), "last_bias": normal(experts, depth),
        }  # fmt: skip
        return one(
            "QMoE", inputs, weights, domain=_DOMAIN, k=chosen, activation_type="swiglu",
            swiglu_fusion=1, block_size=32, expert_weight_bits=4, accuracy_level=level,
        )()  # fmt: skip

    return case


def _linear_attention(tokens: int, keys: int, heads: int, size: int) -> Callable[[], Case]:
    """A gated delta network."""
    key = normal(1, tokens, keys, size)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    inputs = {
        "q": normal(1, tokens, keys * size), "k": key.reshape(1, tokens, -1),
        "v": normal(1, tokens, heads * size), "past": normal(1, heads, size, size),
        "decay": -abs(normal(1, tokens, heads)), "beta": abs(normal(1, tokens, heads)) % 1,
    }  # fmt: skip
    return one(
        "LinearAttention", inputs, domain=_DOMAIN, more=(_FLOAT,), q_num_heads=keys,
        kv_num_heads=heads,
    )  # fmt: skip


def _causal(tokens: int, channels: int, taps: int) -> Callable[[], Case]:
    inputs = {
        "x": normal(1, channels, tokens), "w": normal(channels, 1, taps),
        "bias": normal(channels), "past": normal(1, channels, taps - 1),
    }  # fmt: skip
    of_inputs = one(
        "CausalConvWithState", inputs, domain=_DOMAIN, more=(_FLOAT,), activation="silu"
    )

    def case() -> Case:
        """With weights that are stored."""
        model, given = of_inputs()
        for name in ("w", "bias"):
            model.graph.input.remove(next(x for x in model.graph.input if x.name == name))
            model.graph.initializer.append(numpy_helper.from_array(inputs[name], name))
        return model, {name: given[name] for name in ("x", "past")}

    return case


DECODERS: dict[str, Callable[[], Case]] = {
    **{
        f"MoE, {tokens} tokens, 2 of 16 experts": _mixture(tokens, 16, 768, 1024, 2)
        for tokens in (1, 4, 64, 512)
    },
    **{
        f"QMoE of 4 bits, {tokens} tokens, 4 of 32 experts": _mixture_in_blocks(
            tokens, 32, 1024, 1024, 4
        )
        for tokens in (1, 4, 64, 512)
    },
    **{
        f"QMoE at level 4, {tokens} tokens": _mixture_in_blocks(tokens, 32, 1024, 1024, 4, level=4)
        for tokens in (1, 64)
    },
    **{
        f"LinearAttention, {tokens} tokens, 32 heads of 128": _linear_attention(tokens, 16, 32, 128)
        for tokens in (1, 16, 256)
    },
    **{f"CausalConvWithState, {tokens} tokens": _causal(tokens, 4096, 4) for tokens in (1, 256)},
}
