"""ONNX Runtime MRotaryEmbedding: ONNX's RotaryEmbedding, whose columns have positions of their own.

In: x[B, S, hidden] or [B, heads, S, D], positions [3, B, S] in time, height and width, tables of
cosines and sines. Out: what ONNX's RotaryEmbedding gives, each column of whose tables is looked up
by one of the three. Not done here: ragged batches, and the attribute ``scale``, which ONNX Runtime
does not read on processors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.as_onnx import as_onnx
from ingot_compiler.frontend.compose import broadcast_to, reshape, slice_axis
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.known_values import as_known_values
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_of, with_size
from ingot_compiler.ir.op_type_error import OpTypeError, require

_STREAMS = 3


def _translate(context: OpContext) -> Sequence[int]:
    if context.bool_attribute("is_packed_batching"):
        raise Unsupported("ragged batches, which ONNX Runtime has for GPUs alone")
    if context.float_attribute("scale", 1.0) != 1.0:
        raise Unsupported("a scale other than 1")
    positions = context.operand(1)
    sizes_of(context, positions, 3)
    positions = with_size(context, positions, 0, _STREAMS, "three positions of each token")
    streams = _streams(context)
    tables = [_columns(context, context.operand(i), positions, streams) for i in (2, 3)]
    attributes = {
        name: context.int_attribute(name, 0)
        for name in ("interleaved", "num_heads", "rotary_embedding_dim")
    }
    x = context.operand(0)
    if context.rank_of(x) == 3 and not attributes["num_heads"]:
        attributes["num_heads"] = _heads(context, x, 2 * len(streams))
    return (as_onnx(context, "RotaryEmbedding", x, *tables, None, **attributes),)


def _heads(context: OpContext, x: int, width: int) -> int:
    """How many heads there are, where the tables reach over each."""
    size = context.shape_of(x)[2]
    if not isinstance(size, int):
        raise OpTypeError("num_heads, or a last dimension that is known", context.type_of(x))
    return size // width


def _streams(context: OpContext) -> list[int]:
    """Which position each column is looked up by: 0, 1 or 2."""
    sections = context.ints_or("mrope_section", ())
    require(len(sections) == _STREAMS and min(sections) >= 0, "three sections", str(sections))
    columns = sum(sections)
    if not context.int_attribute("mrope_layout", 0):
        return [stream for stream, count in enumerate(sections) for _ in range(count)]
    return [
        column % _STREAMS if column < _STREAMS * sections[column % _STREAMS] else 0
        for column in range(columns)
    ]


def _columns(context: OpContext, table: int, positions: int, streams: Sequence[int]) -> int:
    """[B, S, columns] of a table [rows, columns]."""
    table = with_size(context, table, 1, len(streams), f"tables of {len(streams)} columns")
    _, batch, rows = context.shape_of(positions)
    shape = (batch, rows, len(streams))
    result = -1
    for stream in range(_STREAMS):
        own = reshape(context, slice_axis(context, positions, 0, stream, 1), (batch, rows))
        found = as_onnx(context, "Gather", table, own)
        mask = as_known_values([one == stream for one in streams], (len(streams),))
        is_own = broadcast_to(context, context.known("bool", mask), shape)
        result = found if result < 0 else context.add("select", is_own, found, result)
    return result


OP = OnnxOp(
    "MRotaryEmbedding",
    _translate,
    signature="input position_ids cos_cache sin_cache -> output; interleaved:int "
    "is_packed_batching:int mrope_layout:int mrope_section!:ints num_heads:int "
    "rotary_embedding_dim:int scale:float",
)
