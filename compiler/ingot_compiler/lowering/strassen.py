"""A contraction by Strassen's algorithm: seven products of halves in the place of eight.

In: numbers. Out: ``StrassenTile``, a part of a ``Contraction``. Not done here: the contraction
(``loops``), when it is chosen (``backends.host.choose_strassen``), code
(``backends.host.emit.kernels.strassen``).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

Side = tuple[tuple[int, int], ...]
"""A sum of blocks of a factor: (block, sign); blocks are 0 and 1 above, 2 and 3 below."""

PRODUCTS: tuple[tuple[Side, Side], ...] = (
    (((0, 1), (3, 1)), ((0, 1), (3, 1))),
    (((2, 1), (3, 1)), ((0, 1),)),
    (((0, 1),), ((1, 1), (3, -1))),
    (((3, 1),), ((2, 1), (0, -1))),
    (((0, 1), (1, 1)), ((3, 1),)),
    (((2, 1), (0, -1)), ((0, 1), (1, 1))),
    (((1, 1), (3, -1)), ((2, 1), (3, 1))),
)
"""What is multiplied: a sum of blocks of A by one of B."""

RESULTS: tuple[Side, ...] = (
    ((0, 1), (3, 1), (4, -1), (6, 1)),
    ((2, 1), (4, 1)),
    ((1, 1), (3, 1)),
    ((0, 1), (1, -1), (2, 1), (5, 1)),
)
"""Each block of the result as a sum of products: (product, sign), added in this order."""


@dataclass(frozen=True, slots=True)
class StrassenTile:
    """A tile has two times ``vectors`` vectors of columns beside each other, whose halves are the
    blocks of B, as those of its rows are of A. Of the depth each block takes ``depth`` at a time:
    so many products are a chain from 0, and the sums of chains are added in their order."""

    vectors: int
    depth: int
