"""ONNX Runtime GroupQueryAttention: attention of a decoder, with its cache, rotation and window.

In: q[B, S, heads * D] with k and v [B, S, groups * D], or all of them packed; perhaps a past
[B, groups, P, D]; how many keys each sample has, less one, and how many the longest one has; tables
of the rotation. Out: [B, S, heads * D], the keys and values with their past, the scores. Not done
here: the caches (``whole_cache``, ``window_cache``, ``quantized_cache`` of ``frontend``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    clamp,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim, sizes_of, with_fixed_size
from ingot_compiler.frontend.families.attention.attention_heads import (
    Masks,
    Softmax,
    additive,
    attend,
    merge_heads,
    split_heads,
)
from ingot_compiler.frontend.families.attention.cache_lengths import CacheLengths, cache_lengths
from ingot_compiler.frontend.families.attention.quantized_cache import QuantizedCache
from ingot_compiler.frontend.families.attention.whole_cache import WholeCache
from ingot_compiler.frontend.families.attention.window_cache import WindowCache
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.frontend.ops.microsoft.rotary_embedding import rotated
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum


def _translate(context: OpContext) -> Sequence[int]:
    is_window = context.bool_attribute("sliding_window_cache")
    if is_window and _wants_scores(context):
        raise Unsupported("the scores of a cache of the size of the window")
    q, k, v = _heads(context)
    batch, _, new, _ = context.shape_of(q)
    lengths = cache_lengths(context, batch, new)
    q, k = _normalised(context, q, "q", 14), _normalised(context, k, "k", 15)
    if context.bool_attribute("do_rotary"):
        q, k = _rotated(context, q, k, lengths)
    cache = (WindowCache if is_window else WholeCache).of(context, lengths)
    k, present_k = _extended(context, cache, k, "k")
    v, present_v = _extended(context, cache, v, "v")
    softmax = Softmax(
        context.float_attribute("softcap", 0.0), _sink(context, q), _wants_scores(context)
    )
    masks = _masks(context, q, lengths, cache.places(context))
    result, scores = attend(context, q, k, v, masks, softmax)
    return merge_heads(context, result), present_k, present_v, ABSENT if scores is None else scores


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


def _extended(
    context: OpContext, cache: WholeCache | WindowCache, new: int, name: str
) -> tuple[int, int]:
    """The keys or values that queries read, and the present. The heads of a past have the size of
    the new ones, which the GenAI builder leaves open."""
    position, depth = {"k": 3, "v": 4}[name], context.shape_of(new)[3]
    past, codes = context.optional(position), QuantizedCache.of(context, name, new, position + 9)
    if past is not None and isinstance(depth, int):
        sizes_of(context, past, 4)
        size = codes.width(depth) if codes else depth
        past = with_fixed_size(context, past, 3, size, f"a cache of heads of {size} numbers")
    if codes is None:
        return cache.extended(context, new, past)
    read, present = cache.extended(context, codes.integers(new), past)
    return codes.floats(read), present


def _normalised(context: OpContext, x: int, name: str, position: int) -> int:
    """Heads with an RMS norm of their own, where the node has its weights."""
    weights = context.optional(position)
    if weights is None:
        return x
    both = context.float_attribute("qk_norm_epsilon", 1e-6)
    epsilon = context.float_attribute(f"{name}_norm_epsilon", both)
    return as_onnx(context, "RMSNormalization", x, weights, axis=-1, epsilon=epsilon)


def _rotated(context: OpContext, q: int, k: int, lengths: CacheLengths) -> tuple[int, int]:
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


def _positions(context: OpContext, q: int, lengths: CacheLengths, rows: Dim) -> int:
    """[B, S]: those that the node gives, else those behind the past of each sample."""
    given = context.optional(9)
    if given is not None:
        return given
    batch = context.shape_of(q)[0]
    places = reshape(context, lengths.places(context, 1), (batch, lengths.new))
    last = context.add("sub", size_scalar(context, rows), context.scalar("i64", 1))
    return clamp(context, places, context.scalar("i64", 0), last)


def _masks(context: OpContext, q: int, lengths: CacheLengths, places: int) -> Masks:
    """Keys behind each query, before its window and beyond the sample are left out. Queries beyond
    the sample see what its last one sees, for they would be NaN without any key."""
    last = binary_scalar(context, "sub", lengths.total, 1)
    query = context.add("min", lengths.places(context, 2), last)
    kept = context.add("less", places, lengths.total)
    if context.bool_attribute("causal", default=True):
        kept = context.add("less_equal", places, query)
    window = context.int_attribute("local_window_size", -1)
    if window > 0:
        first = binary_scalar(context, "sub", query, window)
        kept = context.add("logical_and", kept, context.add("less", first, places))
    bias = context.optional(10)
    added = [additive(context, kept, q, float("-inf"))]
    return Masks(added if bias is None else [_bias(context, bias, places), *added])


def _bias(context: OpContext, bias: int, places: int) -> int:
    """[.., S, keys] of a bias [.., S, total]: its column for the position of each key of a cache of
    the size of the window."""
    if not context.bool_attribute("sliding_window_cache"):
        return bias
    own, rows = context.shape_of(bias), context.shape_of(places)
    last = size_scalar(context, own[3] - 1)
    columns = clamp(context, places, context.scalar("i64", 0), last)
    columns = broadcast_to(context, columns, (rows[0], *own[1:3], rows[3]))
    wide = broadcast_to(context, bias, (rows[0], *own[1:]))
    return context.add("gather_elements", wide, columns, axis=3)


def _sink(context: OpContext, q: int) -> int | None:
    """The score of each head that takes a part of its rows: given, or 0."""
    given = context.optional(11)
    if given is not None:
        return reshape(context, given, (context.int_attribute("num_heads", 0), 1, 1))
    if context.int_attribute("smooth_softmax", -1) > 0:
        return context.scalar(context.dtype_of(q), 0.0)
    return None


GROUP_QUERY_ATTENTION = OnnxOp(
    "GroupQueryAttention",
    _translate,
    signature="query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? "
    "sin_cache? position_ids? attention_bias? head_sink? k_scale? v_scale? q_norm_weight? "
    "k_norm_weight? query_seqlens? -> output present_key? present_value? output_qk?; causal:int "
    "do_rotary:int k_norm_epsilon:float k_quant_type:string kv_cache_bit_width:int "
    "kv_num_heads!:int local_window_size:int num_heads!:int q_norm_epsilon:float "
    "qk_norm_epsilon:float qk_output:int rotary_interleaved:int scale:float "
    "sliding_window_cache:int smooth_softmax:int softcap:float v_quant_type:string",
)
OPS = (GROUP_QUERY_ATTENTION,)
