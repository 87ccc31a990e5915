"""A product of parts in turns: a part of the depth meets several panels before the next one does.

In: a contraction whose only taps are tiles of the depth. Out: loops over panels, one for each turn.
Not done here: how many turns there are (``matrix_tiles``), whose units they are (``contraction``).

The rows of A that a unit has stay in the second cache for a part of the depth where they do not for
all of it. A chain goes on from the sums of the turn before, so that no bit depends on the turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_add, dim_min, dim_mul, substitute, symbol
from ingot_compiler.kernels.anchored_group import ACCUMULATOR
from ingot_compiler.kernels.matrix_tiles import COLUMNS_TOGETHER
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.loops.loop_parts import CarriedSums
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.program import Contraction, For, Statement, Store

PANEL = "panel"
"""Which panel of its unit a contraction has."""
PANELS_TOGETHER = 12


def in_turns(statement: Contraction, turns: int, sums: int, group: Dim) -> Iterator[Statement]:
    """The loops of each turn over the panels of group number ``group``, with the sums of the ones
    before in buffer ``sums``."""
    ((tile, tiles),) = statement.taps
    panels = ceil_div(statement.columns, COLUMNS_TOGETHER)
    panel_count = dim_min(PANELS_TOGETHER, panels - dim_mul(group, PANELS_TOGETHER))
    assert isinstance(tiles, int)
    assert statement.split is not None
    place = dim_mul(symbol(statement.row), statement.columns) + symbol(statement.column)
    stored = Store(sums, place, Local(ACCUMULATOR, statement.dtype))
    for turn in range(turns):
        moved: dict[str, Dim] = {tile: dim_add(symbol(tile), turn * (tiles // turns))}
        plain_index = substitute(statement.split.plain_index, moved)
        part = replace(
            statement,
            taps=((tile, tiles // turns),),
            a_index=substitute(statement.a_index, moved),
            b_index=substitute(statement.b_index, moved),
            split=replace(statement.split, plain_index=plain_index),
            carried=CarriedSums(sums, place) if turn else None,
            epilogue=statement.epilogue if turn == turns - 1 else (stored,),
        )
        yield For(PANEL, panel_count, "serial", (part,))
