"""The keys of one register tile of scores.

In: ``Head``, the number of keys to take. Out: chunks of keys, and where each one's vectors lie in
the packed panels. Not done here: the sums (``attention_scores``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.blocks.products.accumulators import Pointers, side_by_side
from ingot_compiler.codegen.emit.control import multiple_below
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.kernels.attention_layout import key_vectors
from ingot_compiler.kernels.tiles import lanes_of_rest
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some vectors of ``lanes`` keys, all in one panel. Behind them there may be a vector of
    ``last_lanes``, the first of the next panel. The last vector may have fewer keys than lanes where
    ``has_tail``."""

    vectors: int
    lanes: int
    has_tail: bool
    last_lanes: int = 0

    @property
    def vectors_in_all(self) -> int:
        """Vectors of scores."""
        return self.vectors + bool(self.last_lanes)

    @property
    def keys(self) -> int:
        """Keys of all vectors."""
        return self.vectors * self.lanes + self.last_lanes


def key_chunks(head: Head, limit: LlvmValue) -> list[tuple[Chunk, LlvmValue]]:
    """Chunks, and where the keys end that are taken by such: whole panels; of the last one as many
    vectors as there are where that is known, else one after the other; half a vector where that is
    enough."""
    w, layout, lanes = head.writer, head.layout, head.lanes
    whole = multiple_below(w, limit, layout.panel)
    panels, half = Chunk(layout.vectors, lanes, has_tail=False), Chunk(1, lanes // 2, has_tail=True)
    if limit.integer is None or whole.integer is None:
        one = Chunk(1, lanes, has_tail=True)
        if lanes_of_rest(1, "f32", 1, w.target) == lanes:
            return [(panels, whole), (one, limit)]
        in_vectors = multiple_below(w, w.add(limit, i64(lanes // 2 - 1)), lanes)
        return [(panels, whole), (one, in_vectors), (half, limit)]
    left = key_vectors(limit.integer - whole.integer, w.target)
    end = whole.integer + left * lanes
    if 0 < whole.integer == end < limit.integer and layout.has_half_beside:
        last = Chunk(layout.vectors, lanes, has_tail=True, last_lanes=lanes // 2)
        return [(panels, i64(end - layout.panel)), (last, limit)]
    rest = Chunk(max(left, 1), lanes, has_tail=end > limit.integer)
    return [(panels, whole), (rest, i64(end)), (half, limit)]


def key_vectors_of(head: Head, chunk: Chunk, key: LlvmValue) -> Pointers:
    """Where the chunk's keys from ``key`` on lie, a vector each."""
    w, layout, depth = head.writer, head.layout, head.statement.depth_extent
    inside = w.binary("urem", key, i64(layout.panel)) if chunk.keys < layout.panel else ZERO
    start = w.add(w.mul(w.sub(key, inside), i64(depth)), inside)
    first = w.offset(head.packed_keys, start, "float")
    vectors = side_by_side(first, chunk.vectors, chunk.lanes)
    return (*vectors, (first, depth * layout.panel)) if chunk.last_lanes else vectors
