"""ONNX Runtime SparseAttention: GroupQueryAttention of the blocks that a table names.

In: what GroupQueryAttention has, its cache in a buffer of all rows; for each of some layouts, the
blocks of keys that each block of queries sees, as compressed rows. Out: what GroupQueryAttention
gives. Not done here: that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    full,
    iota,
    range_mask,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.attention.attention_heads import additive
from ingot_compiler.frontend.families.attention.cache_lengths import cache_lengths
from ingot_compiler.frontend.ops.microsoft.group_query_attention import (
    GROUP_QUERY_ATTENTION as GROUPED,
)
from ingot_compiler.ir.dims import Dim, dim_floordiv
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.sizes.ranges import maximum


def _translate(context: OpContext) -> Sequence[int]:
    ends = cast(context, context.operand(8), "i64")
    last = binary_scalar(context, "sub", ends, 1)
    operands = [context.optional(position) for position in range(5)]
    operands += [last, context.operand(7), context.optional(9), context.optional(10), None]
    own = ("sparse_block_size",)
    attributes = {name: it for name, it in context.attributes.items() if name not in own}
    node = replace(context, operands=tuple(operands), attributes=attributes)
    bias = _bias(context, node)
    return GROUPED.translate(replace(node, operands=(*operands, bias)))


def _bias(context: OpContext, node: OpContext) -> int:
    """[B, heads, S, keys]: minus infinity for keys of blocks that a query does not see."""
    heads, size = (
        context.int_attribute("num_heads", 0),
        context.int_attribute("sparse_block_size", 0),
    )
    require(heads > 0 and size > 0, "heads and a block size above 0", f"{heads} and {size}")
    q = context.operand(0)
    batch, rows, _ = sizes_of(context, q, 3)
    lengths = cache_lengths(node, batch, rows)
    keys = maximum(lengths.most, sizes_of(context, context.operand(3), 4)[2])
    seen = _seen(context)
    layouts, blocks, _ = context.shape_of(seen)
    places = reshape(context, lengths.places(context, 1), (batch, rows))
    of_query = binary_scalar(context, "div", places, size)
    last = binary_scalar(context, "sub", size_scalar(context, blocks), 1)
    of_query = context.add("min", of_query, last)
    of_key = binary_scalar(context, "div", iota(context, keys), size)
    found = as_onnx(context, "Gather", seen, of_query, axis=1)
    found = as_onnx(context, "Gather", found, context.add("min", of_key, last), axis=3)
    found = unsqueeze(context, transpose(context, found, (1, 0, 2, 3)), (1,))
    repeats = dim_floordiv(heads, layouts)
    wide = broadcast_to(context, found, (batch, repeats, layouts, rows, keys))
    return additive(context, reshape(context, wide, (batch, heads, rows, keys)), q, float("-inf"))


def _seen(context: OpContext) -> int:
    """Which blocks of keys each block of queries sees: [layouts, blocks, blocks]."""
    starts, columns = (cast(context, context.operand(place), "i64") for place in (5, 6))
    layouts, count = sizes_of(context, columns, 2)
    blocks: Dim = sizes_of(context, starts, 2)[1] - 1
    # Row r has the entries from starts[r] to starts[r + 1].
    ends = unsqueeze(context, slice_axis(context, starts, 1, 1, blocks), (2,))
    entry = range_mask(context, (1, 1, count), 2)
    is_behind = context.add("less_equal", ends, entry)
    row = reduce(context, cast(context, is_behind, "i64"), "sum", (1,))
    is_entry = context.add("less", row, size_scalar(context, blocks))
    nowhere = size_scalar(context, blocks)
    # What is no entry goes into a row that is cut off.
    place = context.add("add", context.add("mul", row, nowhere), columns)
    outside = context.add("mul", nowhere, nowhere)
    place = context.add("select", is_entry, place, outside)
    flat = full(context, "i64", 0, (layouts, blocks * blocks + 1))
    ones = full(context, "i64", 1, (layouts, count))
    marked = as_onnx(context, "ScatterElements", flat, place, ones, axis=1)
    kept = slice_axis(context, marked, 1, 0, blocks * blocks)
    table = reshape(context, kept, (layouts, blocks, blocks))
    return binary_scalar(context, "equal", table, 1)


OPS = (
    OnnxOp(
        "SparseAttention",
        _translate,
        signature="query key? value? past_key past_value block_row_indices block_col_indices "
        "total_sequence_length key_total_sequence_lengths cos_cache? sin_cache? -> output "
        "present_key present_value; do_rotary:int kv_num_heads!:int num_heads!:int "
        "rotary_interleaved:int scale:float sparse_block_size!:int",
    ),
)
