"""What all tiles of one unit of fused attention share.

In: an ``Attention`` and the emission context of its kernel. Out: ``Head``, ``QueryTile``. Not done
here: the layout of scratch (``attention_layout``), what is computed (``attention``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.lane_trees import lanes_per_result
from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim, substitute
from ingot_compiler.kernels.attention_layout import AttentionLayout, attention_layout
from ingot_compiler.kernels.attention_values import packs_values
from ingot_compiler.lowering.loops.program import Attention
from ingot_runtime.lazy_dataclass import dataclass

F32 = Factors("f32", "f32", "f32")
# Beyond, a scale times a constant may leave the range of f32.
_SCALE_MIN, _SCALE_MAX = 1e-30, 1e30


@dataclass(frozen=True, slots=True)
class Head:
    """Pointers into scratch, extents, slots: ``maxima`` and ``factors`` have one number or more for
    each query of a tile, ``vectors`` a vector, ``keys_least`` the keys that may not be skipped, 0
    or all."""

    context: EmitContext
    statement: Attention
    layout: AttentionLayout
    packed_keys: LlvmValue
    packed_values: LlvmValue
    scores: LlvmValue
    maxima: LlvmValue
    factors: LlvmValue
    vectors: LlvmValue
    keys: LlvmValue
    keys_padded: LlvmValue
    keys_least: LlvmValue

    @property
    def writer(self) -> Writer:
        """Where to write."""
        return self.context.writer

    @property
    def lanes(self) -> int:
        """The f32 lanes of a vector."""
        return self.layout.lanes

    def score_row(self, row: LlvmValue) -> LlvmValue:
        """The pointer to the scores of query number ``row`` of a tile."""
        w = self.writer
        return w.offset(self.scores, w.mul(row, self.keys_padded), "float")

    @property
    def group_rows(self) -> int:
        """Queries whose lanes are combined at once."""
        return min(self.layout.rows, self.lanes)

    def maximum(self, row: LlvmValue) -> LlvmValue:
        """The pointer to the greatest score of query number ``row`` of a tile."""
        return self._number(self.maxima, row)

    def factor(self, row: LlvmValue) -> LlvmValue:
        """The pointer to the reciprocal of the sum of the exponentials of query number ``row``."""
        return self._number(self.factors, row)

    def _number(self, numbers: LlvmValue, row: LlvmValue) -> LlvmValue:
        w, distance = self.writer, lanes_per_result(self.group_rows, self.lanes)
        return w.offset(numbers, w.mul(row, i64(distance)), "float")

    def row_vector(self, row: LlvmValue) -> LlvmValue:
        """The pointer to a vector for query number ``row`` of a tile: its greatest scores, then the
        sums of its exponentials, lane by lane."""
        return self.writer.offset(self.vectors, self.writer.mul(row, i64(self.lanes)), "float")

    @property
    def packs_values(self) -> bool:
        """Whether values are copied into scratch."""
        return packs_values(self.statement, self.context.target)

    @property
    def scales(self) -> bool:
        """Whether scores in scratch are multiplied by the scale, as a mask asks for; else their
        exponentials are computed with it."""
        scale = self.statement.scale
        return self.statement.mask is not None or not _SCALE_MIN < scale < _SCALE_MAX

    @property
    def score_unit(self) -> float:
        """What a score in scratch stands for."""
        return 1.0 if self.scales else self.statement.scale

    def address(self, buffer: int, index: Dim, outer: str, at: LlvmValue, inner: str) -> LlvmValue:
        """The pointer to the element where `outer` is `at` and `inner` is 0."""
        with self.context.scope():
            self.context.bind({outer: at})
            return emit_address(self.context, buffer, substitute(index, {inner: 0}))


@dataclass(frozen=True, slots=True)
class QueryTile:
    """Queries ``first`` .. ``first + valid``, which see no key from ``limit`` on."""

    first: LlvmValue
    valid: LlvmValue
    limit: LlvmValue


def attention_head(context: EmitContext, statement: Attention) -> Head:
    """Emit the addresses and extents that all tiles share."""
    w = context.writer
    layout = attention_layout(
        statement.keys,
        statement.depth_extent,
        statement.value_extent,
        statement.query_block,
        context.target,
        in_place=statement.in_place,
        packs_values=packs_values(statement, context.target),
    )
    values = w.offset(context.scratch, emit_index(context, layout.values_offset), "float")
    scores = w.offset(context.scratch, emit_index(context, layout.scores_offset), "float")
    keys, keys_padded = emit_index(context, statement.keys), emit_index(context, layout.keys_padded)
    vectors = w.slot("float", layout.rows * layout.lanes)
    numbers = -(-layout.rows // layout.lanes) * layout.lanes
    maxima, factors = w.slot("float", numbers), w.slot("float", numbers)
    keys_least = w.slot("i64")
    return Head(
        context, statement, layout, context.scratch, values, scores, maxima, factors,
        vectors, keys, keys_padded, keys_least,
    )  # fmt: skip
