"""The blocks of a sum: the products of a block are added up before they are added to the others.

In: the loops of a sum. Out: ``SumBlocks``. Not done here: code (``products.multiply_blocks``).

The error of a chain of multiply-adds grows with the square root of its length, that of a sum of
blocks with that of a block and of their number. All sums of floats have the blocks of this rule,
whatever computes them, so that their bits are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_mul, symbol
from ingot_runtime.lazy_dataclass import dataclass

_PRODUCTS = 192
_PRODUCTS_MAX = _PRODUCTS * 3 // 2
Loop = tuple[str, Dim]


@dataclass(frozen=True, slots=True)
class Parts:
    """A loop is cut into parts of so many ``rounds``; ``whole`` are those of all. The last part has
    what is left: between a half and one and a half times as many."""

    rounds: int
    whole: Dim

    @property
    def count(self) -> Dim:
        """How many parts there are."""
        return dim_max(dim_floordiv(self.whole + (self.rounds // 2 - 1), self.rounds), 1)

    @property
    def are_equal(self) -> bool:
        """Whether the last part is known to be like the others."""
        return isinstance(self.whole, int) and self.whole % self.rounds == 0


@dataclass(frozen=True, slots=True)
class SumBlocks:
    """The loops ``around`` blocks and those ``inside`` of one, outer to inner. Where blocks are
    ``parts`` of the first loop inside, the last one around is over the parts, and ``index`` says what
    the name of the loop stands for."""

    around: tuple[Loop, ...]
    inside: tuple[Loop, ...]
    parts: Parts | None = None
    index: Mapping[str, Dim] = field(default_factory=dict[str, Dim])


def sum_blocks(loops: Sequence[Loop]) -> SumBlocks:
    """Cut a sum into blocks of some 192 products: as many inner loops as have few enough, and as many
    rounds of the next one."""
    size, first = 1, len(loops)
    while first:
        extent = loops[first - 1][1]
        parts = Parts(_PRODUCTS // size, extent) if size <= _PRODUCTS // 2 else None
        is_one = parts is not None and parts.count == 1
        if isinstance(extent, int) and (is_one or size * extent <= _PRODUCTS_MAX):
            size, first = size * max(extent, 1), first - 1
        elif parts is not None:
            return _cut(loops, first - 1, parts)
        else:
            break
    return SumBlocks(tuple(loops[:first]), tuple(loops[first:]))


def _cut(loops: Sequence[Loop], place: int, parts: Parts) -> SumBlocks:
    """The loop in a place is cut."""
    name, part = loops[place][0], f"part of {loops[place][0]}"
    around = (*loops[:place], (part, parts.count))
    inside = ((name, parts.rounds), *loops[place + 1 :])
    index = {name: dim_mul(parts.rounds, symbol(part)) + symbol(name)}
    return SumBlocks(around, inside, parts, index)
