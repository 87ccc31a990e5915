"""Prefetches keys that are read in place, some rows ahead: a few lines between the loads of each
query.

In: ``Head``, where a block of keys begins, which load comes. Out: prefetches. Not done here: the
loads (``attention_in_place``).

A cache is longer than what the processor keeps, and is read once: hardware stops fetching at each
page, and all lines of a block at once are more than can be on their way. Further ahead is slower.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_runtime.lazy_dataclass import dataclass

_LINE_ELEMENTS = 16  # of 64 bytes
_KEYS_AHEAD = 16
_INTO_L2 = 2


@dataclass(frozen=True, slots=True)
class KeysAhead:
    """One query's share of a later block: ``lines`` from ``first`` on in each round of ``loads``
    vectors."""

    writer: Writer
    first: LlvmValue
    lines: int
    loads: int

    def fetch(self, loaded: LlvmValue, load: int) -> None:
        """Fetch what belongs to load number ``load`` of a round, before which so many elements of
        depth were loaded of each key."""
        every = max(self.loads // self.lines, 1)
        line, rest = divmod(load, every)
        if rest or line >= self.lines:
            return
        w = self.writer
        before = w.mul(w.binary("udiv", loaded, i64(self.loads)), i64(self.lines))
        place = w.mul(w.add(before, i64(line)), i64(_LINE_ELEMENTS))
        w.prefetch(w.offset(self.first, place, "float"), _INTO_L2)


def keys_ahead(head: Head, block: LlvmValue, query: LlvmValue, vectors: int) -> KeysAhead | None:
    """What a query of a tile fetches behind the block of keys at ``block``, of which each round
    loads so many vectors of each key; None where keys do not lie one behind the other."""
    w, lanes, depth = head.writer, head.lanes, head.statement.depth_extent
    if coefficient(head.statement.k_index, head.statement.key) != depth:
        return None
    rounds = depth // (vectors * lanes)
    lines = -(-lanes * depth // (_LINE_ELEMENTS * head.layout.rows * rounds))
    own = w.mul(query, i64(lines * rounds * _LINE_ELEMENTS))
    first = w.offset(block, w.add(own, i64(_KEYS_AHEAD * depth)), "float")
    return KeysAhead(w, first, lines, vectors * lanes)
