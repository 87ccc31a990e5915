"""The methods by which a product may run: ``ingot tune`` measures them, and tuning files name them.

In: nothing. Out: names, which are those of the kinds of kernels; the refusal of one. Not done here: which one is chosen
(``choose``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.message import nodes_text

DIRECT, STRASSEN = "conv", "conv_strassen"
MATRIX_DIRECT, MATRIX_STRASSEN = "matmul", "matmul_strassen"
WINOGRAD_TILES = ((2, 2), (2, 4), (3, 3), (3, 4), (4, 4), (1, 2), (1, 4))
"""Rows and columns of a tile's results."""
WINOGRAD = tuple("winograd_{}x{}".format(*tile) for tile in WINOGRAD_TILES)
METHODS_OF: Mapping[str, tuple[str, ...]] = {
    "conv": (DIRECT, *WINOGRAD, STRASSEN),
    "matmul": (MATRIX_DIRECT, MATRIX_STRASSEN),
}
"""By core op, the direct one first."""
METHODS = tuple(method for methods in METHODS_OF.values() for method in methods)


def no_method_error(node: Node, method: str, names: Sequence[str]) -> UserError:
    """Somebody names a ``method`` that the layer cannot run by; ``names``: those that it can."""
    why = f"expected one of {', '.join(names)} for its shape, inputs and precision"
    do = "write the tuning file anew: `ingot tune MODEL`"
    where = nodes_text(node.source)
    return UserError(f"method {method!r} is not for this layer", where, why, do)
