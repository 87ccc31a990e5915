"""Mixtures of experts: which experts a token goes to, what they do with it.

In: a context, tokens, scores of a router, the products of all experts. Out: value ids. Not done
here: what the weights are (``ops.microsoft.mo_e``, ``ops.microsoft.q_mo_e``), which rows a product
groups (core ``grouped_matmul``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    reduce,
    reshape,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.operand_sizes import require_dim, sizes_from, sizes_of
from ingot_compiler.frontend.families.tensors.selection import order
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul, dim_product
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass

Product = Callable[[int, int], int]
"""(rows [P, K], their experts [P]) -> rows [P, N], with the bias of each expert."""
_INTERLEAVED = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """What ``swiglu`` and ``geglu`` multiply, and how: ``fusion`` 0 where another product makes the
    second factor, 1 where pairs of rows of the weights belong together, 2 where halves do;
    ``is_gelu``: the first factor goes through the tanh form of GELU, and the numbers play no part."""

    fusion: int
    alpha: float
    beta: float
    limit: float
    is_gelu: bool = False


@dataclass(frozen=True, slots=True)
class Routing:
    """The experts of each token, i64 [T, k], and their shares, f32 [T, k]."""

    experts: int
    shares: int


def activation_of(context: OpContext) -> str | Gate:
    """The activation between the products: its name, or a gate.

    Raises:
        Unsupported: a gate that ONNX Runtime has on GPUs alone.
    """
    name = context.string_attribute("activation_type", "relu")
    if name not in ("swiglu", "geglu"):
        return name
    fusion = context.int_attribute("swiglu_fusion", 0)
    if fusion not in (0, _INTERLEAVED, 2):
        raise OpTypeError("swiglu_fusion of 0, 1 or 2", fusion)
    if name == "geglu":
        return Gate(fusion, 1.0, 0.0, math.inf, is_gelu=True)
    if context.bool_attribute("swiglu_limit_after_activation"):
        raise Unsupported("swiglu_limit_after_activation")
    numbers = (("activation_alpha", 1.0), ("activation_beta", 0.0), ("swiglu_limit", math.inf))
    alpha, beta, limit = (context.float_attribute(*number) for number in numbers)
    return Gate(fusion, alpha, beta, limit)


def in_halves(context: OpContext, weights: int, activation: str | Gate) -> int:
    """Rows [E, N, ..] of the first product, or their parameters: all first factors of a gate, then
    all second ones."""
    if not isinstance(activation, Gate) or activation.fusion != _INTERLEAVED:
        return weights
    count, rows, *others = context.shape_of(weights)
    pairs = reshape(context, weights, (count, dim_floordiv(rows, 2), 2, *others))
    rank = len(others) + 3
    return reshape(
        context, transpose(context, pairs, (0, 2, 1, *range(3, rank))), (count, rows, *others)
    )


def require_each(context: OpContext, scores: int, positions: Iterable[int]) -> None:
    """Refuse operands, those that are there, that are not for each expert that has a score."""
    count = sizes_of(context, scores, 2)[1]
    for position in positions:
        value = context.optional(position)
        if value is not None:
            _require_size(context, sizes_from(context, value, 1)[0], count, "experts")


def _require_size(context: OpContext, own: Dim, wanted: Dim, what: str) -> None:
    expected = message(wanted, f" {what}, as scores have")
    require_dim(context, dim_add(own, dim_mul(wanted, -1)), expected, own)


def route(context: OpContext, scores: int, mixing: int | None, *, of_chosen: bool) -> Routing:
    """The ``k`` experts of the largest scores; their shares are a softmax of scores, ``of_chosen``
    alone or of all, or what ``mixing`` says, perhaps divided by their sum."""
    count = context.int_attribute("k", 1)
    tokens, expert_count = sizes_of(context, scores, 2)
    if mixing is not None:
        pairs = zip(sizes_of(context, mixing, 2), (tokens, expert_count), strict=True)
        for (own, wanted), what in zip(pairs, ("tokens", "experts"), strict=True):
            _require_size(context, own, wanted, what)
    if count < 1 or (isinstance(expert_count, int) and count > expert_count):
        raise OpTypeError(f"k of 1 to {expert_count}", count)
    scores = cast(context, scores, "f32")
    normalizes = context.bool_attribute("normalize_routing_weights")
    experts = order(context, scores, largest=True, count=count)

    def chosen(values: int) -> int:
        return context.add("gather_elements", values, experts, axis=1)

    if mixing is None and (of_chosen or normalizes):
        return Routing(experts, context.add("softmax", chosen(scores), axis=1))
    if mixing is None:
        return Routing(experts, chosen(context.add("softmax", scores, axis=1)))
    shares = chosen(cast(context, mixing, "f32"))
    if normalizes:
        total = reduce(context, shares, "sum", (1,), keepdims=True)
        shares = context.add("div", shares, total)
    return Routing(experts, shares)


def mixture(
    context: OpContext,
    routing: Routing,
    activation: str | Gate,
    products: tuple[Product, Product | None, Product],
) -> int:
    """The experts' results, each by its share: ``products`` are the first one, that of a second
    factor, the last one."""
    x, (tokens, count) = context.operand(0), context.shape_of(routing.experts)
    shape = sizes_of(context, x, 2, 3)
    depth, pairs = shape[-1], dim_product((tokens, count))
    rows = unsqueeze(context, reshape(context, x, (tokens, depth)), (1,))
    rows = reshape(context, broadcast_to(context, rows, (tokens, count, depth)), (pairs, depth))
    experts = reshape(context, routing.experts, (pairs,))
    first, second, last = products
    inner = first(rows, experts)
    other = None if second is None else second(rows, experts)
    results = last(_activated(context, inner, other, activation), experts)
    shares = unsqueeze(context, cast(context, routing.shares, context.dtype_of(results)), (2,))
    results = reshape(context, results, (tokens, count, context.shape_of(results)[1]))
    total = reduce(context, context.add("mul", results, shares), "sum", (1,), keepdims=False)
    return reshape(context, total, (*shape[:-1], context.shape_of(total)[1]))


def bias_of(context: OpContext, position: int, activation: str | Gate) -> int | None:
    """The biases [E, N] of a product at an operand, in the order of its rows; None where it has
    none."""
    bias = context.optional(position)
    if bias is None:
        return None
    sizes_of(context, bias, 2)
    return in_halves(context, bias, activation)


def with_bias(context: OpContext, results: int, bias: int | None, experts: int) -> int:
    """Rows [P, N] and the bias [E, N] of their experts."""
    if bias is None:
        return results
    return context.add("add", results, context.add("gather", bias, experts, axis=0))


def _activated(context: OpContext, x: int, other: int | None, activation: str | Gate) -> int:
    """What the last product multiplies; Unsupported for what ONNX Runtime has on GPUs alone."""
    if isinstance(activation, Gate):
        return _gated(context, x, other, activation)
    match activation:
        case "identity":
            return x
        case "relu":
            return context.add("relu", x)
        case "gelu":
            return context.add("gelu", x, approximate="tanh")
        case "silu":
            return context.add("silu", x)
        case _:
            raise Unsupported(f"activation_type {activation}")


def _gated(context: OpContext, x: int, other: int | None, gate: Gate) -> int:
    if gate.fusion:
        half = dim_floordiv(context.shape_of(x)[1], 2)
        x, other = (slice_axis(context, x, 1, start, half) for start in (0, half))
    elif other is None:
        raise OpTypeError("fc3_experts_weights, without which a gate has no second factor", "none")
    assert other is not None
    if gate.limit < math.inf:
        x = binary_scalar(context, "min", x, gate.limit)
        other = binary_scalar(context, "min", other, gate.limit)
        other = binary_scalar(context, "max", other, -gate.limit)
    if gate.is_gelu:
        return context.add("mul", context.add("gelu", x, approximate="tanh"), other)
    inner = x if gate.alpha == 1 else binary_scalar(context, "mul", x, gate.alpha)
    activated = context.add("mul", x, context.add("sigmoid", inner))
    if gate.beta:
        other = binary_scalar(context, "add", other, gate.beta)
    return context.add("mul", activated, other)
