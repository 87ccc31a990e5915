"""Linear attention as its ops have it: heads apart, decays as factors.

In: a context, queries, keys and values [B, T, heads, depth], logarithms of decays, changes, a state
[B, heads, K, V] of f32. Out: value ids. Not done here: how an op packs them
(``ops.microsoft.linear_attention``, ``ops.microsoft.gated_delta_net``).
"""

from __future__ import annotations

import math

from ingot_compiler.frontend.build.compose import cast, full, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass

_RULES = ("linear", "gated", "delta", "gated_delta")


@dataclass(frozen=True, slots=True)
class Heads:
    """``decay`` [B, T, H] or [B, T, H, K], ``beta`` [B, T, H]; None where the rule has none."""

    q: int
    k: int
    v: int
    decay: int | None
    beta: int | None
    state: int | None


def linear_attention(context: OpContext, heads: Heads) -> tuple[int, int]:
    """The results [B, T, heads, V], and the state behind the last token."""
    rule = context.string_attribute("update_rule", "gated_delta", _RULES)
    q, k, v = (cast(context, each, "f32") for each in (heads.q, heads.k, heads.v))
    batch, length, count, columns = sizes_of(context, v, 4)
    depth = context.shape_of(q)[3]
    if not isinstance(depth, int):
        raise OpTypeError("a number of elements of each head", context.type_of(q))
    of_tokens = batch, length, count
    decay, beta = (
        _parameter(context, value, name) if has else full(context, "f32", 1, of_tokens)
        for value, name, has in (
            (heads.decay, "decay", "gated" in rule), (heads.beta, "beta", "delta" in rule),
        )
    )  # fmt: skip
    if "gated" in rule:
        decay = context.add("exp", decay)
    if context.rank_of(decay) == 3:
        decay = unsqueeze(context, decay, (3,))
    state = heads.state
    if state is None:
        state = full(context, "f32", 0, (batch, count, depth, columns))
    scale = context.float_attribute("scale", 0.0) or 1 / math.sqrt(depth)
    operands = (q, k, v, decay, beta, cast(context, state, "f32"))
    result, last = context.add_many(
        "linear_attention", *operands, corrects="delta" in rule, scale=scale
    )
    return result, last


def _parameter(context: OpContext, value: int | None, name: str) -> int:
    if value is None:
        raise OpTypeError(f"{name}, which the rule needs", "none")
    return cast(context, value, "f32")
