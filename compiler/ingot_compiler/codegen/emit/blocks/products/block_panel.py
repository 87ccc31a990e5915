"""The layout of a panel of integers of 4 or 8 bits that are scaled in blocks.

In: the ``BlockedProduct`` of a unit. Out: its words and parameters in registers. Not done here:
products (``blocked_product``, ``digit_products``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import MEMORY, from_memory
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.lowering.loops.program import BlockedProduct
from ingot_runtime.lazy_dataclass import dataclass

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class BlockPanel:
    """The columns of one unit, from ``column`` on, in vectors of ``lanes``."""

    context: EmitContext
    statement: BlockedProduct
    column: LlvmValue
    lanes: int

    @property
    def writer(self) -> Writer:
        """Where code goes."""
        return self.context.writer

    @property
    def vectors(self) -> int:
        """Vectors of a panel."""
        return panel_columns("f32") // self.lanes

    @property
    def words(self) -> int:
        """Words of a block in a column."""
        return self.statement.block * self.statement.bits // WORD_BITS


def parameter(panel: BlockPanel, buffer: int, block: LlvmValue, vector: int) -> LlvmValue:
    """A number of ``buffer`` for each column of a vector: [panel][block][column]."""
    w, width, dtype = panel.writer, panel_columns("f32"), panel.context.dtypes[buffer]
    element = MEMORY[dtype]
    index = w.add(w.mul(panel.column, i64(panel.statement.blocks)), w.mul(block, i64(width)))
    pointer = w.offset(panel.context.buffers[buffer], index, element)
    place = w.offset(pointer, i64(vector * panel.lanes), element)
    return from_memory(w, w.load(place, element, panel.lanes), dtype)


def load_word(panel: BlockPanel, word: LlvmValue, vector: int) -> LlvmValue:
    """A word of each column, as it is stored: [panel][word][column]."""
    w, width, statement = panel.writer, panel_columns("f32"), panel.statement
    words = i64(statement.blocks * panel.words)
    index = w.add(w.mul(panel.column, words), w.mul(word, i64(width)))
    pointer = w.offset(panel.context.buffers[statement.b], index, "i32")
    place = w.offset(pointer, i64(vector * panel.lanes), "i32")
    return w.load(place, "i32", panel.lanes, align=1)


def with_other_signs(panel: BlockPanel, words: LlvmValue) -> LlvmValue:
    """Unsigned numbers less the middle as two's complement, and the other way round."""
    ones = (1 << WORD_BITS) // ((1 << panel.statement.bits) - 1)  # the lowest bit of each number
    flips = (ones << (panel.statement.bits - 1)) - (1 << WORD_BITS)
    return panel.writer.binary("xor", words, constant(flips, "i32", panel.lanes))
