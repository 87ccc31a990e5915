"""The register tile of a sum, and the loops that it runs over.

In: pointers, element types, index expressions. Out: records. Not done here: code (``multiply``,
``multiply_step``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ingot_compiler.codegen.emit.operands import Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

Step = int | LlvmValue
Pointers = tuple[tuple[LlvmValue, int], ...]
"""A pointer and a constant displacement, in elements: of each row of A, of each vector of B."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of the sum and how far one round moves in A and in B, in elements; integers, or
    symbols' values. ``multiple``: an extent that is no integer is a multiple of it, and not 0 where
    it is more than 1. ``whole``: the rounds of the loop that this is a part of, where known."""

    extent: Step
    a_step: Step
    b_step: Step
    multiple: int = 1
    whole: int | None = None

    @property
    def known_rounds(self) -> int | None:
        """The rounds of the whole loop, where known."""
        extent = self.extent if isinstance(self.extent, int) else None
        return extent if self.whole is None else self.whole


@dataclass(frozen=True, slots=True)
class Factors:
    """Element types of A and B in memory and of the sums; ``together``: elements of A, and of a
    column of B, that one step takes, an i32 of them where they are more than one."""

    a: DType
    b: DType
    sum: DType
    together: int = 1


@dataclass(frozen=True, slots=True)
class NextPanel:
    """What the tiles of a panel fetch of the one behind it, each its share: where that of this tile
    begins; ``ratio``: elements of it for each of a vector of B, with ``RATIO_BITS`` binary places;
    how many tiles there usually are."""

    RATIO_BITS: ClassVar = 16
    share: LlvmValue
    ratio: LlvmValue
    tile_count: int

    def place(self, w: Writer, offset: LlvmValue, element: str) -> LlvmValue:
        """What is fetched beside the elements of B so far behind the beginning of a vector."""
        first = w.binary("lshr", w.mul(offset, self.ratio), i64(self.RATIO_BITS))
        return w.offset(self.share, first, element)


@dataclass(frozen=True, slots=True)
class AccumulatorTile:
    """One register tile: the rows of A and the vectors of B, the last of which is read under
    ``mask`` (None: whole). ``fixed`` stands for every element of A, which then is not read.
    ``last_lanes``: the last vector of B has so many (0: as many as the others). ``a_again``: for
    each of the last vectors, what it is multiplied by: the rows of ``a`` by pointers of which LLVM
    does not know it. ``steps_ahead``: how far B is prefetched into L2; 0 leaves it to the rule for
    panels. ``b_added`` or ``b_subtracted``, where they are not empty, lie as B does: each vector of
    B is the sum or difference of both. ``b_addends``, ``other_addends``: i32 that are added to the
    integers of the vectors of B, and of ``b_added`` or ``b_subtracted``; none: nothing is.
    ``b_columns``: where the columns of the vectors of B begin, whose elements lie together; none:
    rows of B do. ``next_panel``: what is fetched meanwhile."""

    writer: Writer
    a: Pointers
    b: Pointers
    lanes: int
    factors: Factors
    mask: LlvmValue | None = None
    fixed: LlvmValue | None = None
    steps_ahead: int = 0
    last_lanes: int = 0
    a_again: tuple[Pointers, ...] = ()
    b_added: Pointers = ()
    b_subtracted: Pointers = ()
    b_addends: Operands = ()
    other_addends: Operands = ()
    b_columns: Pointers = ()
    next_panel: NextPanel | None = None

    @property
    def vectors(self) -> int:
        """Vectors of a row of the tile."""
        return len(self.b)

    @property
    def row_lanes(self) -> tuple[int, ...]:
        """The lanes of each vector of a row."""
        return (*(self.lanes,) * (self.vectors - 1), self.last_lanes or self.lanes)


@dataclass(frozen=True, slots=True)
class AxisParts:
    """Parts of so many ``rounds`` of a loop that has ``whole``; the last one has what is left."""

    rounds: int
    whole: Step


@dataclass(frozen=True, slots=True)
class SumLoops:
    """The loops of a sum, outer to inner; behind the innermost one come ``rest`` elements, fewer
    than a step takes. ``blocks`` are loops around them, of each round of which the sum is added to
    that of those before; where ``parts`` are given, the innermost of them is over parts of the
    first of ``axes``."""

    axes: tuple[Axis, ...]
    rest: int = 0
    blocks: tuple[Axis, ...] = ()
    parts: AxisParts | None = None


def side_by_side(first: LlvmValue, count: int, distance: int) -> Pointers:
    """``count`` vectors that begin ``distance`` elements apart, at ``first``."""
    return tuple((first, number * distance) for number in range(count))


def hidden(w: Writer, pointers: Pointers) -> Pointers:
    """Return the rows under pointers whose origin LLVM cannot see. LLVM would load an element once
    for all vectors of B, into all lanes by an instruction of its own, and take the narrow vector of
    an element out of the wide one by another, where a second load costs nothing."""
    again = {pointer: w.hidden(pointer) for pointer in dict(pointers)}
    return tuple((again[pointer], displacement) for pointer, displacement in pointers)


def widened(w: Writer, values: Sequence[LlvmValue], lanes: int) -> Operands:
    """Vectors of so many lanes; what is in those that a value lacks is not to be stored."""
    return tuple(
        value
        if value.lanes == lanes
        else w.shuffle(value, [lane % value.lanes for lane in range(lanes)])
        for value in values
    )


def merged_dims(
    loops: Sequence[tuple[str, Dim]], a_index: Dim, b_index: Dim, *, keep: bool = False
) -> tuple[tuple[Dim, Dim, Dim], ...]:
    """Return (extent, step in A, step in B) of `loops`, outer to inner, with contiguous neighbours
    made one loop; those of one round are left out unless they are to be kept."""
    merged: list[tuple[Dim, Dim, Dim]] = []
    for name, extent in loops:
        a_step, b_step = coefficient(a_index, name), coefficient(b_index, name)
        if a_step is None or b_step is None:
            raise InternalError(
                "contraction index is not linear",
                where=f"loop {name}",
                why=f"A {a_index}, B {b_index}",
            )
        if extent == 1 and not keep:
            continue
        if merged and merged[-1][1:] == (extent * a_step, extent * b_step):
            merged[-1] = (merged[-1][0] * extent, a_step, b_step)
        else:
            merged.append((extent, a_step, b_step))
    return tuple(merged) or ((1, 0, 0),)
