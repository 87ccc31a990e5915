"""ONNX Runtime MRotaryEmbedding: rotary embeddings by three positions of each token, in time, down
and across an image.

In: x [B, S, hidden] or [B, heads, S, D], positions [3, B, S], tables of cosines and sines. Out:
what ONNX's RotaryEmbedding gives by tables whose columns are those of one of the three positions.
Not done here: ragged batches and the attribute ``scale`` (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.ops.microsoft.rotary_embedding import turned
from ingot_compiler.ir.op_type_error import OpTypeError

_STREAMS = 3


def _translate(context: OpContext) -> Sequence[int]:
    streams = _streams(context)
    positions = context.operand(1)
    if sizes_of(context, positions, 3)[0] != _STREAMS:
        raise OpTypeError("three positions of each token", context.type_of(positions))
    cosines, sines = (
        _columns(context, context.operand(table), positions, streams) for table in (2, 3)
    )
    return (turned(context, (cosines, sines), None),)


def _streams(context: OpContext) -> Sequence[int]:
    """Which of the positions each column of the tables is for."""
    sections = context.ints_or("mrope_section", ())
    layout = context.int_attribute("mrope_layout", 0)
    if len(sections) != _STREAMS or min(sections) < 0:
        raise OpTypeError("mrope_section of three sizes", list(sections))
    if layout not in (0, 1):
        raise OpTypeError("mrope_layout of 0 or 1", layout)
    half = sizes_of(context, context.operand(2), 2)[1]
    if half != sum(sections):
        raise OpTypeError(f"tables of {sum(sections)} columns, the sum of mrope_section", half)
    if layout == 0:
        return [stream for stream, size in enumerate(sections) for _ in range(size)]
    columns = enumerate(column % _STREAMS for column in range(sum(sections)))
    return [own if column < _STREAMS * sections[own] else 0 for column, own in columns]


def _columns(context: OpContext, table: int, positions: int, streams: Sequence[int]) -> int:
    """[B, S, half]: of each token the rows of the table at its positions, column by column."""
    rows = as_onnx(context, "Gather", table, positions, axis=0)
    found, *others = (
        reshape(context, slice_axis(context, rows, 0, stream, 1), context.shape_of(rows)[1:])
        for stream in range(_STREAMS)
    )
    for stream, other in enumerate(others, 1):
        is_own = context.known("bool", np.array(streams) == stream)
        found = context.add("select", is_own, other, found)
    return found


OPS = (
    OnnxOp(
        "MRotaryEmbedding",
        _translate,
        signature="input position_ids cos_cache sin_cache -> output; interleaved:int "
        "is_packed_batching:int mrope_layout:int mrope_section!:ints num_heads:int "
        "rotary_embedding_dim:int scale:float",
    ),
)
