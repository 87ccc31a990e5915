"""The methods by which a convolution may run: ``ingot tune`` measures them, and tuning files name
them.

In: nothing. Out: names, which are those of the kinds of kernels. Not done here: which one is chosen
(``method_of_conv``).
"""

from __future__ import annotations

DIRECT, STRASSEN = "conv", "conv_strassen"
WINOGRAD_TILES = ((2, 2), (2, 4), (3, 3), (3, 4), (4, 4), (1, 2), (1, 4))
"""Rows and columns of a tile's results."""
WINOGRAD = tuple("winograd_{}x{}".format(*tile) for tile in WINOGRAD_TILES)
METHODS = (DIRECT, *WINOGRAD, STRASSEN)
