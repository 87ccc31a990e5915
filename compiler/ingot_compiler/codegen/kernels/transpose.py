"""Copies between layouts: square tiles that are transposed in registers.

In: a ``Transpose`` and the emission context of its kernel. Out: LLVM IR in the kernel's function.
Not done here: which operands are read so (``kinds.pointwise``), what becomes of the elements (their epilogue).

A tile has as many rows and columns as a vector has f32 lanes. Each of its columns is one contiguous vector in memory; pairs
of them are interleaved within 128 bits, then blocks of 128 bits change places: 64 shuffles for 16 x 16 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingot_compiler.codegen.emit_context import Context
from ingot_compiler.codegen.emit_convert import MEMORY, from_memory
from ingot_compiler.codegen.emit_index import emit_index
from ingot_compiler.codegen.emit_memory import emit_address
from ingot_compiler.codegen.emit_statement import emit_statements
from ingot_compiler.codegen.kernels.epilogue import DIRECT_INSTRUCTIONS_MAX, statement_weight
from ingot_compiler.codegen.writer import Operand, Writer, constant
from ingot_compiler.ir.dims import dim_add, substitute, symbol
from ingot_compiler.lowering.loops import Transpose

_QUAD = 4  # elements that are interleaved without leaving 128 bits


@dataclass(frozen=True, slots=True)
class _Tile:
    """Rows ``row`` .. and columns ``column`` .., of which the first ``rows_left`` and ``columns_left`` (None: all) exist."""

    context: Context
    statement: Transpose
    row: Operand
    rows_left: Operand | None
    column: Operand
    columns_left: Operand | None

    @property
    def lanes(self) -> int:
        """Rows and columns of a whole tile."""
        return self.context.target.f32_lanes


def emit_transpose(context: Context, statement: Transpose) -> None:
    """Emit the block: all tiles of a strip of columns, then the next strip."""

    def strip(column: Operand, columns_left: Operand | None) -> None:
        def tile(row: Operand, rows_left: Operand | None) -> None:
            _emit_tile(_Tile(context, statement, row, rows_left, column, columns_left))

        _over_tiles(context, emit_index(context, statement.row_start), row_end, tile)

    with context.scope():
        row_end = _end(context, statement.row_start, statement.row_block, statement.rows)
        column_end = _end(context, statement.column_start, statement.column_block, statement.columns)
        _over_tiles(context, emit_index(context, statement.column_start), column_end, strip)


def _end(context: Context, start: Dim, block: int, extent: Dim) -> Operand:
    """The end of a block, seen to be exact where all blocks are whole."""
    if isinstance(extent, int) and extent % block == 0:
        return emit_index(context, dim_add(start, block))
    return emit_index(context, dim_min(dim_add(start, block), extent))
