"""Parts of the blocks of loop programs: how a tile lies in registers, how factors lie in memory,
who works together.

In: nothing. Out: classes that a ``Contraction`` or another block has as fields. Not done here: the
blocks (``loops``).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ingot_compiler.ir.dims import Dim
from ingot_compiler.lowering.loops.loop_values import BufferNumber, Index, Variable, WholeBuffer
from ingot_runtime.lazy_dataclass import dataclass

Taps = tuple[tuple[Variable, Dim], ...]
FixedTaps = tuple[tuple[Variable, int], ...]
TwoTaps = tuple[tuple[Variable, int], tuple[Variable, int]]
Moved = tuple[tuple[str, BufferNumber, Index], ...]
VectorCount = Annotated[int, "of registers beside each other"]


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """``rows`` x ``vectors`` accumulators of a contraction, each a vector register of sums."""

    TEXT: ClassVar = "$rows$vectors"
    rows: int
    vectors: VectorCount


@dataclass(frozen=True, slots=True)
class PackedPanels:
    """How a packed B lies: ``columns`` beside each other, ``step`` elements from panel to panel;
    ``together`` elements of the depth beside each other in a column. Zeros fill panels and taps.
    ``addends``: a buffer of i32, a number for each column, which is added to the integers of B."""

    TEXT: ClassVar = "$columns step=$step together=$together| addends=$addends|"
    columns: int
    step: Dim
    together: int = 1
    addends: WholeBuffer | None = None


@dataclass(frozen=True, slots=True)
class SplitFactors:
    """Factors of f32 as sums of bf16, of which the operands of a contraction are the greatest parts.

    ``a`` and ``b``: the buffers of the lower parts, the larger ones first, which lie as the first
    ones do. ``plain``: the buffer of A itself, at ``plain_index``. ``fits``: the buffer whose first
    element, a bool, says whether products of parts are near enough; where they are not, A itself is
    multiplied by the sums of the parts of B, as one chain of multiply-adds for each element.
    """

    a: tuple[WholeBuffer, ...]
    b: tuple[WholeBuffer, ...]
    plain: BufferNumber
    plain_index: Index
    fits: WholeBuffer


@dataclass(frozen=True, slots=True)
class CarriedSums:
    """Where the sums lie that those of a block go on from: f32, over its row and column."""

    TEXT: ClassVar = "$buffer[$index]"
    buffer: BufferNumber
    index: Index


@dataclass(frozen=True, slots=True)
class Digits:
    """Rows of A as integers of ``count`` balanced digits to the base 256, block by block.

    ``digits``: their buffer, i8 [row][block][digit][place], the lowest digit first; places are those
    of the block's numbers of 8 bits, of 4 first the even ones, then the odd ones. ``steps``, f32
    [row][block]: what 1 stands for, below 0 in a block that is to be read from A. ``sums``, i32
    [row][block][digit]: of the places.
    """

    TEXT: ClassVar = "$count $digits $steps $sums"
    count: int
    digits: WholeBuffer
    steps: WholeBuffer
    sums: WholeBuffer


@dataclass(frozen=True, slots=True)
class Team:
    """``units`` beside each other, each with one tile of rows or none (``place``: which is this
    one), may bring what they multiply into a memory that they share; without one each works
    alone."""

    TEXT: ClassVar = "$units place=$place"
    units: int
    place: Dim


@dataclass(frozen=True, slots=True)
class StrassenTile:
    """A tile has two times ``vectors`` vectors of columns beside each other, whose halves are the
    blocks of B, as those of its rows are of A. Of the depth each block takes ``depth`` at a time:
    so many products are a chain from 0, and the sums of chains are added in their order."""

    TEXT: ClassVar = "$vectors block=$depth"
    vectors: int
    depth: int
