"""What all parts of one unit of a contraction by Strassen's algorithm share.

In: a ``Contraction`` with a ``StrassenTile`` and the emission context of its kernel. Out:
``StrassenUnit``. Not done here: the parts (``strassen_factors``, ``strassen_products``,
``strassen_results``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Unit, contraction_unit
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import dim_mul, dim_product
from ingot_compiler.kernels.strassen_scratch import StrassenScratch, scratch_of
from ingot_compiler.lowering.loops.loop_parts import StrassenTile
from ingot_compiler.lowering.loops.program import Contraction
from ingot_compiler.lowering.loops.strassen import PRODUCTS
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StrassenUnit:
    """``start`` is its first row; ``products`` are the sums of the seven products of a tile, and
    ``results`` its results, both on the stack."""

    unit: Unit
    tile: StrassenTile
    scratch: StrassenScratch
    start: LlvmValue
    factors: LlvmValue
    products: LlvmValue
    results: LlvmValue

    @property
    def context(self) -> EmitContext:
        """The kernel under construction."""
        return self.unit.context

    @property
    def writer(self) -> Writer:
        """The function under construction."""
        return self.unit.context.writer

    @property
    def statement(self) -> Contraction:
        """The contraction."""
        return self.unit.statement

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.unit.lanes

    @property
    def height(self) -> int:
        """Rows of a block."""
        return self.statement.tile.rows // 2

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return 2 * self.tile.vectors * self.lanes

    @property
    def columns(self) -> int:
        """Columns of the result."""
        columns = self.statement.columns
        assert isinstance(columns, int)
        return columns

    @property
    def blocks(self) -> int:
        """How many times the depth of both halves goes into that of all taps."""
        return _total_depth(self.statement) // (2 * self.tile.depth)

    def at_tile(self, row: LlvmValue) -> StrassenUnit:
        """The tile of the unit that begins so many rows behind its first one."""
        w, pitch = self.writer, len(PRODUCTS) * self.scratch.pitch
        place = w.mul(w.binary("ashr", row, i64(1)), i64(pitch))
        factors = w.offset(self.factors, place, "float")
        return replace(self, start=w.add(self.start, row), factors=factors)

    def factor(self, product: int) -> LlvmValue:
        """Where the rows of A for a product begin in scratch."""
        place = product * self.height * self.scratch.pitch
        return self.writer.offset(self.factors, i64(place), "float")

    def product(self, product: int) -> LlvmValue:
        """Where the sums of a product begin, ``vectors`` of the first row, then of the next."""
        place = product * self.height * self.tile.vectors * self.lanes
        return self.writer.offset(self.products, i64(place), "float")


def strassen_unit(context: EmitContext, statement: Contraction, tile: StrassenTile) -> StrassenUnit:
    """Emit where the unit begins, and its places on the stack."""
    w, unit = context.writer, contraction_unit(context, statement)
    block = statement.tile.rows // 2 * tile.vectors * unit.lanes
    scratch = scratch_of(statement.row_block, _total_depth(statement))
    return StrassenUnit(
        unit,
        tile,
        scratch,
        emit_index(context, statement.row_start),
        context.scratch,
        w.slot("float", len(PRODUCTS) * block),
        w.slot("float", 4 * block),
    )


def _total_depth(s: Contraction) -> int:
    depth = dim_mul(dim_product(tuple(extent for _, extent in s.taps)), s.depth_extent)
    assert isinstance(depth, int)
    return depth
