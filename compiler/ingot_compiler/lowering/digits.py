"""Rows of floats as integers of several digits: where they lie.

In: nothing. Out: ``Digits``. Not done here: the product that reads them (``loops``), making them
(``backends.host.block_digits``).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Digits:
    """Rows of A as integers of ``count`` balanced digits to the base 256, block by block.

    ``digits``: their buffer, i8 [row][block][digit][place], the lowest digit first; places are those
    of the block's numbers of 8 bits, of 4 first the even ones, then the odd ones. ``steps``, f32
    [row][block]: what 1 stands for, below 0 in a block that is to be read from A. ``sums``, i32
    [row][block][digit]: of the places.
    """

    count: int
    digits: int
    steps: int
    sums: int
