"""The order in which the axes of a value are stored, where sizes are open."""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_floordiv, symbol
from ingot_compiler.lowering.groups.views import dense_view, storage_order


def test_frames_of_a_signal_lie_as_they_are() -> None:
    """The number of frames is negative for signals shorter than a frame: such a size says nothing
    of the order, and axes that lie row-major are stored so."""
    frames = dim_floordiv(symbol("n") - 400, 160) + 1
    shape = (symbol("b"), frames, 20, 11)
    assert storage_order(dense_view(shape), shape) == (0, 1, 2, 3)
    turned = dense_view(shape, (1, 3, 0, 2))
    assert storage_order(turned, shape) == (1, 3, 0, 2)


def test_sizes_that_never_grow() -> None:
    """A size that is at most 1 whatever its symbol is taken for does not decide the order."""
    shape = (symbol("b"), dim_floordiv(symbol("n"), 1 << 40), 8)
    assert storage_order(dense_view((symbol("b"), 3, 8)), shape) == (0, 1, 2)
