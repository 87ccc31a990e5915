"""Pass: scaled dot-product attention that exporters decompose.

In: a graph. Out: a graph with ``attention`` nodes. Not done here: causal masks (they stay masks),
projections.

``softmax(scale * q @ transpose(k) + mask) @ v`` with the scale on the scores, on q, on k, or on
both; an optional guard that turns the NaN of a fully masked row into 0; k and v of grouped queries
repeated by broadcast and reshape.
Source: ONNX Attention-23.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import symbols_of
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.passes.match import is_number, orders, without_factor
from ingot_compiler.passes.rewrite import Interior, Rewriter, RootOps, in_shape, rewrite
from ingot_runtime.lazy_dataclass import dataclass

ROOTS: RootOps = ("matmul",)


@dataclass(frozen=True, slots=True)
class _Scores:
    """``scale * left @ right [+ mask]``, or a choice by a boolean mask against -inf."""

    left: int
    right: int
    scale: float
    mask: tuple[int, ...]


def fuse_attention(graph: Graph) -> Graph:
    """Recognise attention where scores and probabilities have no other use."""
    return rewrite(graph, rule, ROOTS)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a product of probabilities and values that is attention."""
    if node.op != "matmul":
        return None
    probabilities, values = node.operands
    guarded = _unguarded(state, probabilities)
    softmax = state.made_by(probabilities if guarded is None else guarded, "softmax")
    if softmax is None:
        return None
    scores = _scores(state, softmax.operands[0])
    reason = _reason_against(state, node, softmax, scores)
    if scores is None or reason:
        state.refuse(node, reason)
        return None
    region = state.interior(node, (scores.left, scores.right, values, *scores.mask))
    if region is None:
        return None
    try:
        return (_emit(state, node, scores, guarded is not None, region),)
    except OpTypeError:
        state.refuse(node, "the mask does not broadcast to the scores")
        return None


def _reason_against(state: Rewriter, node: Node, softmax: Node, scores: _Scores | None) -> str:
    """Why a product with what a softmax gives is not attention that a kernel computes; "" if it
    is."""
    if softmax.integer("axis") != state.type_of(softmax.results[0]).rank - 1:
        return "the softmax is not over the last axis"
    if state.type_of(node.results[0]).dtype == "f64":
        return "the fused kernel computes in f32"
    if scores is None:
        return "the scores are not scale * q @ k, with a mask added or chosen at most"
    if not _shapes_agree(state, node, scores):
        return "q, k and v do not have the same 1 or 2 leading axes"
    if not _sizes_known(state, node, scores):
        return "the size of a head or the number of keys is only known while the model runs"
    return ""


def _unguarded(state: Rewriter, value: int) -> int | None:
    """``p`` of ``select(isnan(p), 0, p)``."""
    guard = state.made_by(value, "select")
    if guard is None:
        return None
    condition, zero, probabilities = guard.operands
    test = state.made_by(condition, "isnan")
    return (
        probabilities
        if test and test.operands == (probabilities,) and is_number(state, zero, 0.0)
        else None
    )


def _scores(state: Rewriter, value: int) -> _Scores | None:
    plain = _scaled_product(state, value, ())
    if plain:
        return plain
    added = state.made_by(value, "add")
    for scores, mask in orders(added) if added else ():
        found = _scaled_product(state, scores, (mask,))
        if found:
            return found
    choice = state.made_by(value, "select")
    if choice and is_number(state, choice.operands[2], float("-inf")):
        return _scaled_product(state, choice.operands[1], choice.operands[:1])
    return None


def _scaled_product(state: Rewriter, value: int, mask: tuple[int, ...]) -> _Scores | None:
    inner, scale = without_factor(state, value)
    product = state.made_by(inner, "matmul")
    if product is None:
        return None
    left, left_scale = without_factor(state, product.operands[0])
    right, right_scale = without_factor(state, product.operands[1])
    total = scale * left_scale * right_scale
    return _Scores(left, right, total, mask) if 0 < abs(total) < float("inf") else None


def _shapes_agree(state: Rewriter, node: Node, scores: _Scores) -> bool:
    """Check q ``[B.., S, D]``, transposed k ``[B.., D, T]``, v ``[B.., T, E]`` of rank 3 or 4 with
    equal leading axes."""
    left, right = state.shape_of(scores.left), state.shape_of(scores.right)
    values = state.shape_of(node.operands[1])
    batch = left[:-2]
    ranks = len(left) in (3, 4) and len(left) == len(right) == len(values)
    return (
        ranks
        and right[:-2] == batch == values[:-2]
        and right[-2] == left[-1]
        and right[-1] == values[-2]
    )


def _sizes_known(state: Rewriter, node: Node, scores: _Scores) -> bool:
    """Check for a kernel whose registers hold a head and whose scratch holds all keys before the
    first of them is there."""
    depth, keys, width = state.shape_of(scores.left)[-1], *state.shape_of(node.operands[1])[-2:]
    given = {
        name for value in state.inputs for dim in state.shape_of(value) for name in symbols_of(dim)
    }
    return isinstance(depth, int) and isinstance(width, int) and set(symbols_of(keys)) <= given


def _emit(state: Rewriter, node: Node, scores: _Scores, nan_to_zero: bool, region: Interior) -> int:
    source = region.source
    query = scores.left
    key, values = _key(state, scores.right, source), node.operands[1]
    if state.type_of(query).rank == 3:
        query, key, values = (_with_batch(state, value, source) for value in (query, key, values))
    else:
        key, values = _ungrouped(state, key, values)
    attributes = {"scale": float(scores.scale), "causal": False, "nan_to_zero": nan_to_zero}
    result = state.emit("attention", (query, key, values, *scores.mask), attributes, source)
    return in_shape(state, result, state.shape_of(node.results[0]), source)


def _key(state: Rewriter, transposed: int, source: Sequence[int]) -> int:
    """Return k ``[.., T, D]`` of ``[.., D, T]``: beneath a transpose of the last two axes, else by
    a transpose."""
    rank = state.type_of(transposed).rank
    swap = (*range(rank - 2), rank - 1, rank - 2)
    node = state.made_by(transposed, "transpose")
    if node and node.ints("permutation") == swap:
        return node.operands[0]
    joined = _key_of_joined_heads(state, transposed, source)
    if joined is not None:
        return joined
    return state.emit("transpose", (transposed,), {"permutation": swap}, source)


def _key_of_joined_heads(state: Rewriter, value: int, source: Sequence[int]) -> int | None:
    """K ``[.., T, D]`` where the last two axes were swapped while all others were one: ``x`` of
    ``reshape(transpose(reshape(x, [N, T, D]), [0, 2, 1]), [.., D, T])``."""
    split = state.made_by(value, "reshape")
    swapped = state.made_by(split.operands[0], "transpose") if split else None
    if swapped is None or swapped.ints("permutation") != (0, 2, 1):
        return None
    *batch, depth, keys = state.shape_of(value)
    if state.shape_of(swapped.operands[0])[1:] != (keys, depth):
        return None
    joined = state.made_by(swapped.operands[0], "reshape")
    key = joined.operands[0] if joined else swapped.operands[0]
    return state.emit("reshape", (key,), {"shape": (*batch, keys, depth)}, source)


def _with_batch(state: Rewriter, value: int, source: Sequence[int]) -> int:
    return state.emit("reshape", (value,), {"shape": (1, *state.shape_of(value))}, source)


def _ungrouped(state: Rewriter, key: int, values: int) -> tuple[int, int]:
    """Return k and v before they were repeated for the query heads that share them; both or
    neither."""
    one, other = _repeated(state, key), _repeated(state, values)
    if one is None or other is None or state.shape_of(one)[:2] != state.shape_of(other)[:2]:
        return key, values
    return one, other


def _repeated(state: Rewriter, value: int) -> int | None:
    """``x [B, G, T, D]`` of
    ``reshape(broadcast_to(reshape(x, [B, G, 1, T, D]), [B, G, r, T, D]), [B, G * r, T, D])``."""
    joined = state.made_by(value, "reshape")
    wide = state.made_by(joined.operands[0], "broadcast_to") if joined else None
    split = state.made_by(wide.operands[0], "reshape") if wide else None
    if wide is None or split is None:
        return None
    shape = state.shape_of(split.operands[0])
    if len(shape) != 4 or not isinstance(shape[1], int):
        return None
    batch, groups, *rest = shape
    repeats = state.shape_of(wide.results[0])[2:3]
    if state.shape_of(wide.results[0]) != (batch, groups, *repeats, *rest):
        return None
    if state.shape_of(split.results[0]) != (batch, groups, 1, *rest):
        return None
    same = state.shape_of(value) == (batch, groups * repeats[0], *rest)
    return split.operands[0] if same else None
