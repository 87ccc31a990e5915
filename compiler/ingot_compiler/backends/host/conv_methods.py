"""The methods that a convolution may run by: what ``ingot tune`` measures, and tuning files name.

In: nothing. Out: names, which are those of the kinds of kernels. Not done here: which one is chosen
(``method_of_conv``).
"""

from __future__ import annotations

DIRECT, STRASSEN = "conv", "conv_strassen"
WINOGRAD = tuple(f"winograd_{tile}" for tile in ("2x2", "2x4", "3x3", "3x4", "4x4", "1x2", "1x4"))
METHODS = (DIRECT, *WINOGRAD, STRASSEN)
