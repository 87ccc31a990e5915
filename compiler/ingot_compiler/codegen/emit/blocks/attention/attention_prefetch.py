"""Prefetches the queries, keys and values of the next head while those of this one are multiplied.

In: ``Head``, the first query of a tile. Out: prefetches. Not done here: which units there are
(``kinds.attention``).

A head with few keys, such as a window's, is soon done, and its rows lie between those of other
heads: only the kernel knows what comes next. Each tile of queries fetches the rows of the next head
that have its queries' numbers; where exponentials overlap, one query at a time, because more lines
at once than a core waits for hold up those that the products want.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, substitute, symbol, symbols_of
from ingot_compiler.lowering.loops.program import Attention

_LINE_ELEMENTS = 16  # of 64 bytes
_GROUP_ELEMENTS_MAX = 1 << 16  # a quarter of a second cache of 1 MiB
_INTO_L2 = 2


def prefetch_next_group(head: Head, first: LlvmValue, count: int) -> None:
    """Fetch the rows of the next group that have the numbers of ``count`` queries."""
    statement = head.statement
    following = _following(statement)
    if not following or not _is_small(statement):
        return
    rows = (
        (statement.q, statement.q_index, statement.query, statement.depth, statement.depth_extent),
        (statement.k, statement.k_index, statement.key, statement.depth, statement.depth_extent),
        (statement.v, statement.v_index, statement.key, statement.value, statement.value_extent),
    )
    w = head.writer
    for number in range(count):
        at = w.add(first, i64(number))
        for buffer, index, row, column, extent in rows:
            place = head.address(buffer, substitute(index, following), row, at, column)
            for start in range(0, extent, _LINE_ELEMENTS):
                w.prefetch(w.offset(place, i64(start), "float"), _INTO_L2)


def _following(statement: Attention) -> dict[str, Dim]:
    """What the index of the units becomes in the next group, each of which has as many units; empty
    where that is unknown."""
    group, queries = statement.group, statement.queries
    names = sorted(symbols_of(group)) if not isinstance(group, int) else []
    if len(names) != 1 or not isinstance(queries, int):
        return {}
    (name,) = names
    units = -(-queries // statement.query_block)
    next_index = symbol(name) + units
    steps_on = substitute(group, {name: next_index}) == group + 1
    return {name: next_index} if steps_on else {}


def _is_small(statement: Attention) -> bool:
    """Whether a group is known to stay in the second cache beside the one before, and has no more
    keys than queries, whose numbers are counted."""
    queries, keys, depth = statement.queries, statement.keys, statement.depth_extent
    if not isinstance(queries, int) or keys != queries or statement.in_place:
        return False
    return queries * (2 * depth + statement.value_extent) <= _GROUP_ELEMENTS_MAX
