"""Computes the exponentials of the next tile of queries between the multiply-adds of this tile's
results.

In: ``Head`` of the next tile, the panel of results, its products. Out: the accumulators; weights in
the place of some of the next tile's scores, and their sums, lane by lane. Not done here: what is
left (``attention_softmax``), what becomes of the accumulators (``attention_values``).

Of the operations of an exponential half run on units that do not multiply, and alone it waits for
itself: a vector takes 12 cycles by itself and 7 between multiply-adds (Zen 4, 512 bits). Its
instructions are spread: all of them in one place fill what a core keeps waiting, which is half as
much when a neighbour runs on the core's other thread. Each panel of columns takes some of the rows,
one after the other.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.blocks.attention.attention_prefetch import prefetch_next_group
from ingot_compiler.codegen.emit.blocks.attention.attention_softmax import (
    add_exponential,
    largest_of_row,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import AccumulatorTile, Axis
from ingot_compiler.codegen.emit.blocks.products.multiply import start_of_sums, steps_of_sum
from ingot_compiler.codegen.emit.control import multiple_below
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.function_code import Code
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_runtime.lazy_dataclass import dataclass

_STEPS_MAX = 8  # more only make the code longer


@dataclass(frozen=True, slots=True)
class OverlappedPanel:
    """Which exponentials of the ``following`` tile, whose queries begin at ``first_query``, panel
    ``number`` of ``count`` takes."""

    following: Head
    first_query: LlvmValue
    number: LlvmValue
    count: int


def overlapped_keys(head: Head, limit: LlvmValue) -> LlvmValue:
    """How many keys of the next tile's rows have exponentials when this tile, which sees keys up to
    the limit, has its results."""
    return multiple_below(head.writer, limit, head.lanes)


def sum_beside_exponentials(
    panel: OverlappedPanel, products: AccumulatorTile, axis: Axis, limit: LlvmValue
) -> Operands:
    """Return the sums of products over ``limit`` keys, as ``emit_sum`` does."""
    head, w = panel.following, products.writer
    share = -(-head.layout.rows // panel.count)
    step_count = min(head.lanes // share, _STEPS_MAX)
    steps = steps_of_sum(products, axis, step_count)
    end = overlapped_keys(head, limit)

    def row(number: LlvmValue, carried: Operands) -> Operands:
        prefetch_next_group(head, w.add(panel.first_query, number), 1)
        largest, scores = largest_of_row(head, number), head.score_row(number)

        def vector(next_key: LlvmValue, carried: Operands) -> Operands:
            key, total, *sums = carried
            of_products: Code = []
            of_exponential: Code = []
            with w.at(of_products):
                here = (w.add(key, i64(step_count)), *steps(key, tuple(sums)))
            with w.at(of_exponential):
                place = w.offset(scores, next_key, "float")
                added = add_exponential(head, place, largest, (total,))
            w.interleave(of_products, of_exponential)
            return (here[0], *added, *here[1:])

        key, *sums = carried
        start = (key, zeros("float", head.lanes), *sums)
        key, total, *sums = w.loop(ZERO, end, head.lanes, start, vector)
        w.store(total, head.row_vector(number))
        return (key, *sums)

    first = w.mul(panel.number, i64(share))
    last = w.intrinsic("smin", w.add(first, i64(share)), i64(head.layout.rows))
    key, *sums = w.loop(first, last, 1, (ZERO, *start_of_sums(products)), row)
    return w.loop(key, limit, 1, tuple(sums), steps_of_sum(products, axis, 1))
