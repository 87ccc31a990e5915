"""Transposed convolutions to few channels: a matrix product with pixels in columns, whose rows are
added where they belong.

In: the state of a rewrite, a ``conv_transpose`` of one group. Out: its phases beside each other as
channels. Not done here: which nodes this suits, and where phases go (``expand_conv_transpose``).

A convolution whose results are all phases of few channels leaves lanes of its vectors empty. Here
row (o, t) of the product is what tap t adds to channel o, for all pixels; each phase is the sum of
the rows of its taps, moved by whole pixels. Where there is one phase, of more channels than a half
vector leaves half empty, it takes depth for that to be faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.passes.rewrite import Rewriter, in_shape
from ingot_compiler.passes.transposed_axis import TransposedAxis

_COLUMNS_MAX = 12  # phases times channels, which a convolution would have in the lanes of a vector
_UNEVEN_COLUMNS_MAX = 32  # of phases with unlike numbers of taps, some of which would be zeros
_DEPTH_MIN = 8
_HALF, _HALF_DEPTH = 4, 12  # columns of half a vector; what each more of one phase needs
_TAPS_MAX = 128  # each is a summand


def suits(state: Rewriter, node: Node, axes: Sequence[TransposedAxis]) -> bool:
    """Whether a node has few channels, enough to add up for each, and taps in all phases."""
    (depth, own, *kernel), dtype = state.shape_of(node.operands[1]), state.type_of(node.results[0]).dtype  # fmt: skip
    assert isinstance(depth, int)
    assert isinstance(own, int)
    columns = own * prod(axis.stride for axis in axes)
    taps = prod(size for size in kernel if isinstance(size, int))
    is_uneven = taps < prod(axis.taps * axis.stride for axis in axes)
    return (
        (node.integer("groups"), dtype in ("f32", "f64")) == (1, True)
        and columns <= (_UNEVEN_COLUMNS_MAX if is_uneven else _COLUMNS_MAX)
        and depth >= _DEPTH_MIN
        and not (columns == own and depth <= _HALF_DEPTH * (columns - _HALF))
        and taps <= _TAPS_MAX
        and all(axis.taps_of(axis.stride - 1) for axis in axes)
    )


def phases_by_taps(state: Rewriter, node: Node, axes: Sequence[TransposedAxis]) -> int:
    """[N, phases * O, sizes of a phase..]."""
    (_, w, *bias), source = node.operands, node.source
    _, own, *_ = state.shape_of(w)
    rows = _rows_of_taps(state, node)
    batch, _, _, *sizes = state.shape_of(rows)
    shape = (batch, own, *(size + axis.more for size, axis in zip(sizes, axes, strict=True)))
    before = [axis.moved_before for axis in axes]
    rows = _padded(state, rows, before, [axis.moved_after for axis in axes], source)
    addend = [in_shape(state, value, (own, *(1 for _ in axes)), source) for value in bias]
    results: list[int] = []
    for phases in product(*(range(axis.stride) for axis in axes)):
        pairs = list(zip(axes, phases, strict=True))
        terms = [
            _moved(state, rows, shape, list(zip(pairs, taps, before, strict=True)), source)
            for taps in product(*(range(axis.taps_of(phase)) for axis, phase in pairs))
        ]
        total, *others = [*terms, *addend]
        for term in others:
            total = state.emit("add", (total, term), None, source)
        results.append(total)
    return results[0] if len(results) == 1 else state.emit("concat", results, {"axis": 1}, source)


def _rows_of_taps(state: Rewriter, node: Node) -> int:
    """[N, O, taps, sizes..]."""
    (x, w, *_), source = node.operands, node.source
    depth, own, *kernel = state.shape_of(w)
    batch, _, *sizes = state.shape_of(x)
    w = in_shape(state, w, (depth, dim_product((own, *kernel))), source)
    w = state.emit("transpose", (w,), {"permutation": (1, 0)}, source)
    columns = in_shape(state, x, (batch, depth, dim_product(tuple(sizes))), source)
    rows = state.emit("matmul", (w, columns), None, source)
    return in_shape(state, rows, (batch, own, dim_product(tuple(kernel)), *sizes), source)


def _padded(
    state: Rewriter, rows: int, before: Sequence[int], after: Sequence[int], source: Sequence[int]
) -> int:
    """With zeros around the images, so that what is moved stays inside."""
    if not any(before) and not any(after):
        return rows
    pads: dict[str, Attribute] = {
        "before": (0, 0, 0, *before), "after": (0, 0, 0, *after), "mode": "constant",
    }  # fmt: skip
    return state.emit("pad", (rows, 0.0), pads, source)


def _moved(
    state: Rewriter,
    rows: int,
    shape: tuple[Dim, ...],
    places: Sequence[tuple[tuple[TransposedAxis, int], int, int]],
    source: Sequence[int],
) -> int:
    """The row of one tap as a part of a phase; ``places``: for each axis it and the phase, the tap,
    the zeros before the image."""
    batch, own, *sizes = shape
    row = 0
    starts: list[Dim] = []
    for (axis, phase), tap, before in places:
        row = row * axis.kernel + phase + axis.stride * tap
        starts.append(before + axis.shift_of(tap))
    attributes: dict[str, Attribute] = {
        "starts": (0, 0, row, *starts),
        "sizes": (batch, own, 1, *sizes),
        "steps": (1,) * (3 + len(sizes)),
    }
    return in_shape(state, state.emit("slice", (rows,), attributes, source), shape, source)
