"""Values of kernels as C: an element, lanes in pieces.

In: nothing. Out: ``CValue``. Not done here: texts of types and numbers (``dialect``), instructions.

i1 is an ``int`` of 0 or 1; lanes of it are lanes of an ``int`` vector, 0 or -1, as comparisons give
them. C has no vector of one lane: it is a scalar there. Pointers are of bytes, in one address space
each; lanes of pointers are byte offsets (``i64`` lanes) from one base.
"""

from __future__ import annotations

from ingot_compiler.codegen.llvm_value import SIZES_BYTES
from ingot_runtime.lazy_dataclass import dataclass

GLOBAL, PRIVATE, CONSTANT = "global", "private", "constant"
"""Address spaces: buffers and scratch, the stack, tables."""


@dataclass(frozen=True, slots=True)
class CValue:
    """``pieces``: C expressions without operators, one per piece of the lanes, or one scalar.

    A pointer has an address ``space``; lanes of pointers also have a ``base``. ``lane``: what each
    lane of a constant is, if all are the same.
    """

    element: str
    lanes: int
    pieces: tuple[str, ...]
    space: str = ""
    base: str = ""
    lane: str = ""

    @property
    def piece_lanes(self) -> int:
        """Lanes of each piece; 0 for a scalar."""
        return self.lanes // len(self.pieces)

    @property
    def text(self) -> str:
        """The only piece."""
        (only,) = self.pieces
        return only

    def share(self, number: int, count: int) -> tuple[str, ...]:
        """The pieces with the lanes of part ``number``, where all lanes are so many parts; and what
        each lane of an address begins at."""
        have = len(self.pieces)
        pieces = self.pieces[number * have // count : -(-(number + 1) * have // count)]
        return (*pieces, self.base) if self.base else pieces


def size_bytes(element: str) -> int:
    """Bytes of an element in memory."""
    return SIZES_BYTES[element]
