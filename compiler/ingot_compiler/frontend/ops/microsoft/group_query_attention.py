"""ONNX Runtime GroupQueryAttention: attention of a decoder, with its cache, rotation and window.

In: q[B, S, heads * D] with k and v [B, S, groups * D], or all of them packed; perhaps a past
[B, groups, P, D]; how many keys each sample has, less one, and how many the longest one has; tables
of the rotation. Out: [B, S, heads * D], the keys and values with their past, the scores. Not done
here: quantised and windowed caches (reported as unsupported).

The present holds max(P, total) rows: the past of each sample, the new rows, and zeros. A call whose
new rows are all there is begins a prompt: no sample has a past then, and shorter ones end early.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.as_onnx import as_onnx
from ingot_compiler.frontend.attention_heads import (
    Masks,
    Softmax,
    additive,
    attend,
    merge_heads,
    split_heads,
)
from ingot_compiler.frontend.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    clamp,
    concat,
    full,
    iota,
    range_mask,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.imported import ABSENT
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import read_size, require_dim, sizes_of
from ingot_compiler.frontend.ops.microsoft.rotary_embedding import rotated
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mod, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ranges import maximum
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Lengths:
    """``past`` and ``total``: i64 [B, 1, 1, 1], the keys of each sample before and after this call;
    ``most``: those of the longest one after it; ``new``: the rows of this call; ``keys``: the rows of
    the present, the first ``kept`` of which each sample has from the past."""

    past: int
    total: int
    most: Dim
    new: Dim
    keys: Dim
    kept: Dim


def _translate(context: OpContext) -> Sequence[int]:
    _refuse(context)
    q, k, v = _heads(context)
    lengths = _lengths(context, q)
    q, k = _normalised(context, q, 14), _normalised(context, k, 15)
    if context.bool_attribute("do_rotary"):
        q, k = _rotated(context, q, k, lengths)
    k, v = (
        _present(context, x, context.optional(position), lengths)
        for x, position in ((k, 3), (v, 4))
    )
    softmax = Softmax(
        context.float_attribute("softcap", 0.0), _sink(context, q), _wants_scores(context)
    )
    result, scores = attend(context, q, k, v, _masks(context, q, lengths), softmax)
    return merge_heads(context, result), k, v, ABSENT if scores is None else scores


def _refuse(context: OpContext) -> None:
    if context.optional(12) is not None or context.optional(13) is not None:
        raise Unsupported("a quantised cache")
    if context.bool_attribute("sliding_window_cache"):
        raise Unsupported("a cache of the size of the window")
    for name in ("k_quant_type", "v_quant_type"):
        context.string_attribute(name, "NONE", ("NONE",))


def _wants_scores(context: OpContext) -> int:
    """1 for scores before the softmax, 2 for what it gives."""
    return context.int_attribute("qk_output", 0) if context.wants(3) else 0


def _heads(context: OpContext) -> list[int]:
    """q, k and v per head."""
    heads, groups = (context.int_attribute(name, 0) for name in ("num_heads", "kv_num_heads"))
    q, k, v = context.operand(0), context.optional(1), context.optional(2)
    if k is not None and v is not None:
        own = ((q, heads), (k, groups), (v, groups))
        return [split_heads(context, x, count) for x, count in own]
    width, start, found = _width(context, q, heads + 2 * groups), 0, list[int]()
    for count in (heads, groups, groups):
        part = slice_axis(context, q, 2, dim_mul(start, width), dim_mul(count, width))
        found.append(split_heads(context, part, count))
        start += count
    return found


def _width(context: OpContext, q: int, parts: int) -> Dim:
    """The size of each of ``parts`` heads that lie beside each other in [B, S, hidden]."""
    expected = f"[batch, sequence, hidden] whose last dimension {parts} heads divide"
    size = context.shape_of(q)[-1] if context.rank_of(q) == 3 else None
    if size is None or parts < 3 or (isinstance(size, int) and size % parts):
        raise OpTypeError(expected, context.type_of(q))
    require_dim(context, dim_mod(size, parts), expected, size)
    return dim_floordiv(size, parts)


def _lengths(context: OpContext, q: int) -> _Lengths:
    batch, _, new, _ = context.shape_of(q)
    past_operand = context.optional(3)
    total = cast(context, reshape(context, context.operand(5), (batch, 1, 1, 1)), "i64")
    total = binary_scalar(context, "add", total, 1)
    keys = read_size(context, context.operand(6))
    if past_operand is None:
        past = full(context, "i64", 0, (batch, 1, 1, 1))
        return _Lengths(past, total, keys, new, maximum(keys, new), 0)
    held = context.shape_of(past_operand)[2]
    is_first = context.add("equal", size_scalar(context, new), size_scalar(context, keys))
    before = context.add("sub", total, size_scalar(context, new))
    past = context.add("select", is_first, context.scalar("i64", 0), before)
    kept = _least(context, reshape(context, past, (batch,)), held)
    return _Lengths(past, total, keys, new, maximum(keys, held), kept)


def _least(context: OpContext, lengths: int, most: Dim) -> Dim:
    """The least of some lengths, at least 0 and at most ``most``."""
    bound = reshape(context, size_scalar(context, most), (1,))
    least = reduce(context, concat(context, [lengths, bound], 0), "min", (0,))
    return read_size(
        context, clamp(context, least, context.scalar("i64", 0), size_scalar(context, most))
    )


def _normalised(context: OpContext, x: int, position: int) -> int:
    """Heads with an RMS norm of their own, where the node has its weights."""
    weights = context.optional(position)
    if weights is None:
        return x
    epsilon = context.float_attribute("qk_norm_epsilon", 1e-6)
    return as_onnx(context, "RMSNormalization", x, weights, axis=-1, epsilon=epsilon)


def _rotated(context: OpContext, q: int, k: int, lengths: _Lengths) -> tuple[int, int]:
    tables = context.operand(7), context.operand(8)
    interleaved = context.bool_attribute("rotary_interleaved")
    rows = sizes_of(context, tables[0], 2)[0]
    beyond = maximum(lengths.most, rows) - rows
    require_dim(
        context,
        beyond,
        message("at most ", rows, " keys, as the tables of the rotation have rows"),
        lengths.most,
    )
    positions = _positions(context, q, lengths, rows)
    return (
        rotated(context, q, positions, tables, interleaved=interleaved),
        rotated(context, k, positions, tables, interleaved=interleaved),
    )


def _positions(context: OpContext, q: int, lengths: _Lengths, rows: Dim) -> int:
    """[B, S]: those that the node gives, else those behind the past of each sample."""
    given = context.optional(9)
    if given is not None:
        return given
    batch = context.shape_of(q)[0]
    past = reshape(context, lengths.past, (batch, 1))
    places = context.add("add", past, iota(context, lengths.new))
    last = context.add("sub", size_scalar(context, rows), context.scalar("i64", 1))
    return clamp(context, places, context.scalar("i64", 0), last)


def _present(context: OpContext, new: int, past: int | None, lengths: _Lengths) -> int:
    """[B, groups, keys, D]: the past of each sample, the new rows, zeros. The rows that every
    sample has from the past stay as they are, so that they need not be moved
    (``passes.hold_state``)."""
    if past is None:
        return _padded(context, new, lengths.keys)
    held, kept = context.shape_of(past)[2], lengths.kept
    rest = lengths.keys - kept
    own = _padded(context, slice_axis(context, past, 2, kept, held - kept), rest)
    own_shape = context.shape_of(own)
    numbers = range_mask(context, own_shape, 2)
    place = context.add("add", numbers, size_scalar(context, kept))
    offset = context.add("sub", place, lengths.past)
    zero, count = context.scalar("i64", 0), size_scalar(context, lengths.new)
    inside = context.add("less", offset, count)
    last = context.add("sub", count, context.scalar("i64", 1))
    wide = broadcast_to(context, clamp(context, offset, zero, last), own_shape)
    moved = context.add("gather_elements", new, wide, axis=2)
    nothing = context.scalar(context.dtype_of(new), 0)
    behind = context.add("select", inside, moved, nothing)
    tail = context.add("select", context.add("less", place, lengths.past), own, behind)
    return concat(context, [slice_axis(context, past, 2, 0, kept), tail], 2)


def _padded(context: OpContext, x: int, rows: Dim) -> int:
    """[B, groups, held, D] with zeros behind its rows."""
    missing = dim_add(rows, dim_mul(context.shape_of(x)[2], -1))
    if missing == 0:
        return x
    zero = context.scalar(context.dtype_of(x), 0)
    return context.add("pad", x, zero, before=(0,) * 4, after=(0, 0, missing, 0), mode="constant")


def _masks(context: OpContext, q: int, lengths: _Lengths) -> Masks:
    """Keys behind each query, before its window and beyond the sample are left out."""
    shape = (context.shape_of(q)[0], 1, lengths.new, lengths.keys)
    keys = range_mask(context, shape, 3)
    query = context.add("add", lengths.past, range_mask(context, shape, 2))
    kept = context.add("less", keys, lengths.total)
    if context.bool_attribute("causal", default=True):
        kept = context.add("less_equal", keys, query)
    window = context.int_attribute("local_window_size", -1)
    if window > 0:
        first = binary_scalar(context, "sub", query, window)
        kept = context.add("logical_and", kept, context.add("less", first, keys))
    bias = context.optional(10)
    added = [additive(context, kept, q, float("-inf"))]
    return Masks(added if bias is None else [bias, *added])


def _sink(context: OpContext, q: int) -> int | None:
    """The score of each head that takes a part of its rows: given, or 0."""
    given = context.optional(11)
    if given is not None:
        return reshape(context, given, (context.int_attribute("num_heads", 0), 1, 1))
    if context.int_attribute("smooth_softmax", -1) > 0:
        return context.scalar(context.dtype_of(q), 0.0)
    return None


OP = OnnxOp(
    "GroupQueryAttention",
    _translate,
    signature="query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? "
    "sin_cache? position_ids? attention_bias? head_sink? k_scale? v_scale? q_norm_weight? "
    "k_norm_weight? -> output present_key? present_value? output_qk?; causal:int do_rotary:int "
    "k_quant_type:string kv_cache_bit_width:int kv_num_heads!:int local_window_size:int "
    "num_heads!:int qk_norm_epsilon:float qk_output:int rotary_interleaved:int scale:float "
    "sliding_window_cache:int smooth_softmax:int softcap:float v_quant_type:string",
)
