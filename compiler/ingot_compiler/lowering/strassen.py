"""A contraction by Strassen's algorithm: seven products of halves in the place of eight.

In: nothing. Out: which products there are, and of what results are sums. Not done here: the tile of
a contraction (``loop_parts``), when it is chosen (``backends.host.choose_strassen``), code
(``backends.host.emit.kernels.strassen``).
"""

from __future__ import annotations

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
