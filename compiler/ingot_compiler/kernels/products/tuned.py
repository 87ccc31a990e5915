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


def name_of_tile(tile: tuple[int, int]) -> str:
    """The method of Winograd's algorithm by tiles of results."""
    return "winograd_{}x{}".format(*tile)


WINOGRAD = tuple(map(name_of_tile, WINOGRAD_TILES))
PARTS_OF_CONV = {2: "conv_bf16x3", 3: "conv_bf16x6"}
PARTS_OF_MATRIX = {2: "matmul_bf16x3", 3: "matmul_bf16x6"}
"""By the number of parts of a factor."""
METHODS_OF: Mapping[str, tuple[str, ...]] = {
    "conv": (DIRECT, *WINOGRAD, STRASSEN, *PARTS_OF_CONV.values()),
    "matmul": (MATRIX_DIRECT, MATRIX_STRASSEN, *PARTS_OF_MATRIX.values()),
}
"""By core op, the direct one first."""
METHODS = tuple(method for methods in METHODS_OF.values() for method in methods)


def no_method_error(node: Node, method: str, names: Sequence[str]) -> UserError:
    """Somebody names a ``method`` that the layer cannot run by; ``names``: those that it can."""
    why = f"expected one of {', '.join(names)} for its shape, inputs and precision"
    do = "write the tuning file anew: `ingot tune MODEL`"
    where = nodes_text(node.source)
    return UserError(f"method {method!r} is not for this layer", where, why, do)
