"""Units that are the rows of images: (image, axes of the image but the last).

In: the shape of a result, [N, C, spatial..]. Out: a point of a row; how many rows there are. Not
done here: what is computed there (``conv_transpose``, ``pool``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kinds.program import INDEX

COLUMN = "x"


def point_of_row(shape: Shape, channel: Dim) -> Space:
    """Column ``COLUMN`` of the unit's row, in one channel."""
    row = Run((0, *range(2, len(shape) - 1)), symbol(INDEX))
    return Space(shape, (row, Run((len(shape) - 1,), symbol(COLUMN)), Run((1,), channel)))


def row_count(shape: Shape) -> Dim:
    """How many units there are."""
    return dim_product((shape[0], *shape[2:-1]))
