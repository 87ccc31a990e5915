"""ONNX Runtime RotaryEmbedding: ONNX's own op, whose operands come in another order.

In: x[B, S, hidden] or [B, heads, S, D], positions [B, S] or the first one [1], tables of cosines
and sines. Out: what ONNX's RotaryEmbedding gives. Not done here: ragged batches and the attribute
``scale``, which ONNX Runtime does not read on processors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import broadcast_to, iota, reshape, transpose
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul


def rotated(
    context: OpContext, x: int, positions: int, tables: tuple[int, int], *, interleaved: bool
) -> int:
    """x[B, heads, S, D] turned by the rows of the tables at ``positions`` [B, S]; what the tables
    do not reach stays."""
    size, reached = context.shape_of(x)[3], sizes_of(context, tables[0], 2)[1]
    width = 2 * reached if isinstance(reached, int) and 2 * reached != size else 0
    return as_onnx(
        context,
        "RotaryEmbedding",
        x,
        *tables,
        positions,
        interleaved=int(interleaved),
        rotary_embedding_dim=width,
    )


def turned(context: OpContext, tables: tuple[int, int], positions: int | None) -> int:
    """The first operand, [B, S, hidden] or [B, heads, S, D], by the rows of the tables at
    ``positions`` [B, S], or by those of tables [B, S, half]."""
    if context.bool_attribute("is_packed_batching"):
        raise Unsupported("ragged batches, which ONNX Runtime has for GPUs alone")
    if context.float_attribute("scale", 1.0) != 1.0:
        raise Unsupported("a scale other than 1")
    x = context.operand(0)
    attributes = {
        name: context.int_attribute(name, 0)
        for name in ("interleaved", "num_heads", "rotary_embedding_dim")
    }
    shape = sizes_of(context, x, 3, 4)
    if len(shape) == 4 or attributes["num_heads"]:
        return as_onnx(context, "RotaryEmbedding", x, *tables, positions, **attributes)
    split = (*shape[:2], *_heads(context, x, context.shape_of(tables[0])[-1]))
    apart = transpose(context, reshape(context, x, split), (0, 2, 1, 3))
    result = as_onnx(context, "RotaryEmbedding", apart, *tables, positions, **attributes)
    return reshape(context, transpose(context, result, (0, 2, 1, 3)), shape)


def _translate(context: OpContext) -> Sequence[int]:
    shape = sizes_of(context, context.operand(0), 3, 4)
    positions = context.operand(1)
    if context.rank_of(positions) == 1:
        batch, rows = shape[0], shape[1 if len(shape) == 3 else 2]
        places = context.add("add", reshape(context, positions, (1,)), iota(context, rows))
        positions = broadcast_to(context, reshape(context, places, (1, rows)), (batch, rows))
    sizes_of(context, context.operand(2), 2)
    return (turned(context, (context.operand(2), context.operand(3)), positions),)


def _heads(context: OpContext, x: int, half: Dim) -> tuple[Dim, Dim]:
    """How many heads there are, and their size, by the width of the tables."""
    size, own = context.shape_of(x)[2], dim_mul(half, 2)
    if own == 0:
        raise Unsupported("tables without columns, where nothing tells the number of heads")
    return dim_floordiv(size, own), own


OPS = (
    OnnxOp(
        "RotaryEmbedding",
        _translate,
        signature="input position_ids cos_cache sin_cache -> output; interleaved:int "
        "is_packed_batching:int num_heads:int rotary_embedding_dim:int scale:float",
    ),
)
