"""Square blocks of elements, transposed in registers.

In: vectors. Out: the vectors of the transposed block. Not done here: loads and stores.

Four vectors at a time are interleaved within 128 bits, then blocks of 128 bits change places: 64
shuffles for 16 x 16 elements, each of one instruction without a table of lane numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer

QUAD = 4  # elements of 128 bits, where they have 32
_BLOCK_BYTES = 16


def transposed(w: Writer, vectors: Sequence[LlvmValue]) -> list[LlvmValue]:
    """Lane i of vector j becomes lane j of vector i; as many vectors as lanes (1, 4, 8 or
    16)."""
    lanes = len(vectors)
    if lanes == 1:
        return list(vectors)
    # quads[q][j]: within block b of 128 bits, the elements 4b+j of the vectors 4q .. 4q+3.
    quads = [within_blocks(w, vectors[first : first + QUAD]) for first in range(0, lanes, QUAD)]
    rows = [_between_blocks(w, [quad[number] for quad in quads]) for number in range(QUAD)]
    return [rows[number % QUAD][number // QUAD] for number in range(lanes)]


def transposed_bytes(w: Writer, vectors: Sequence[LlvmValue]) -> list[LlvmValue]:
    """Do so for 8, 16 or 32 bytes: all instructions stay within 128 bits but the last, which brings
    the halves of 32 together."""
    lanes = len(vectors)
    if lanes <= _BLOCK_BYTES:
        return _interleaved(w, vectors, lanes)
    upper, lower = (
        _interleaved(w, vectors[first : first + _BLOCK_BYTES], _BLOCK_BYTES)
        for first in (0, _BLOCK_BYTES)
    )
    pairs = list(zip(upper, lower, strict=True))
    return [
        w.shuffle(left, [*half, *(lane + lanes for lane in half)], right)
        for half in (range(_BLOCK_BYTES), range(_BLOCK_BYTES, lanes))
        for left, right in pairs
    ]


def _interleaved(w: Writer, vectors: Sequence[LlvmValue], block: int) -> list[LlvmValue]:
    """Transpose each block of as many elements as there are vectors: each round interleaves the
    first half of the vectors with the second."""
    half, found = block // 2, list(vectors)
    for _ in range(block.bit_length() - 1):
        pairs = list(zip(found[:half], found[half:], strict=True))
        found = [_mixed(w, *pair, block, first) for pair in pairs for first in (0, half)]
    return found


def _mixed(w: Writer, left: LlvmValue, right: LlvmValue, block: int, first: int) -> LlvmValue:
    """Take half a block of each operand from ``first`` on, in turns, in every block."""
    places = [
        start + first + place + side
        for start in range(0, left.lanes, block)
        for place in range(block // 2)
        for side in (0, left.lanes)
    ]
    return w.shuffle(left, places, right)


def within_blocks(w: Writer, vectors: Sequence[LlvmValue]) -> list[LlvmValue]:
    """Transpose the 4 x 4 elements of every block of four vectors."""
    a, b, c, d = vectors
    low, high = (0, 4, 1, 5), (2, 6, 3, 7)  # of two blocks
    left, right = (0, 1, 4, 5), (2, 3, 6, 7)
    ab, cd = (
        [_blockwise(w, a, b, low), _blockwise(w, a, b, high)],
        [_blockwise(w, c, d, low), _blockwise(w, c, d, high)],
    )
    return [
        _blockwise(w, ab[half], cd[half], order) for half in range(2) for order in (left, right)
    ]


def _blockwise(w: Writer, left: LlvmValue, right: LlvmValue, order: Sequence[int]) -> LlvmValue:
    """Shuffle two blocks of four elements by one order, in every pair of blocks of the operands."""
    lanes = left.lanes
    places = [(place if place < QUAD else place - QUAD + lanes) for place in order]
    return w.shuffle(
        left, [first + place for first in range(0, lanes, QUAD) for place in places], right
    )


def joined(w: Writer, vectors: Sequence[LlvmValue]) -> LlvmValue:
    """One vector after the other, as one; their number is a power of two."""
    found = list(vectors)
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [w.shuffle(left, range(2 * left.lanes), right) for left, right in pairs]
    return found[0]


def _between_blocks(w: Writer, vectors: Sequence[LlvmValue]) -> list[LlvmValue]:
    """Block b of vector q becomes block q of vector b: one, two or four vectors of as many
    blocks."""
    if len(vectors) == 1:
        return list(vectors)
    if len(vectors) == 2:
        a, b = vectors
        return [_blocks(w, a, b, (0, 2)), _blocks(w, a, b, (1, 3))]
    a, b, c, d = vectors
    halves = [
        (_blocks(w, a, b, order), _blocks(w, c, d, order)) for order in ((0, 1, 4, 5), (2, 3, 6, 7))
    ]
    return [
        _blocks(w, ab, cd, order) for ab, cd in halves for order in ((0, 2, 4, 6), (1, 3, 5, 7))
    ]


def _blocks(w: Writer, left: LlvmValue, right: LlvmValue, order: Sequence[int]) -> LlvmValue:
    """Choose blocks of left (then right) by number."""
    return w.shuffle(left, [QUAD * block + lane for block in order for lane in range(QUAD)], right)
