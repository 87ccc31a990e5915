"""Which storage order a value wants, and what zeros around it: pure functions of the graph, the
kind and the operands.

In: a graph and what its ops ask for; a result and what its kernel reads. Out: orders of axes,
haloes. Not done here: buffers (``storage``), copies into another layout (``relayout``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_max
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import View
from ingot_compiler.lowering.kinds.kind import ResultLayout
from ingot_compiler.lowering.views import storage_order

Halo = tuple[tuple[Dim, ...], tuple[Dim, ...]]
"""Zeros (before, after) per axis."""
IMAGE_RANK_MIN = 3


@dataclass(frozen=True, slots=True)
class ImageDemands:
    """``channels_last``: values that an op reads as images; ``halos``: the zeros that the
    convolutions of a value need, where any."""

    channels_last: frozenset[int]
    halos: Mapping[int, Halo]


def image_demands(readers: Iterable[tuple[Node, bool]]) -> ImageDemands:
    """What the ops that read images ask of their first operands; ``readers``: (node, whether it
    reads zeros around the image)."""
    halos: dict[int, Halo] = {}
    images: set[int] = set()
    for node, reads_halo in readers:
        value = node.operands[0]
        images.add(value)
        if reads_halo:
            halos[value] = _joined(node_halo(node), halos.get(value))
    return ImageDemands(
        frozenset(images), {value: halo for value, halo in halos.items() if any_zeros(halo)}
    )


def node_halo(node: Node) -> Halo:
    """The zeros that a convolution reads around its image: its pads, none along batch and
    channels."""
    return (0, 0, *node.dims("pads_before")), (0, 0, *node.dims("pads_after"))


def any_zeros(halo: Halo) -> bool:
    """Whether a halo has any element."""
    return any(halo[0]) or any(halo[1])


def _joined(halo: Halo, other: Halo | None) -> Halo:
    if other is None:
        return halo
    return tuple(map(dim_max, halo[0], other[0])), tuple(map(dim_max, halo[1], other[1]))


def channels_last(rank: int) -> tuple[int, ...]:
    """Storage order N, spatial.., C."""
    return 0, *range(2, rank), 1


def natural_order(
    result: TensorType,
    layout: ResultLayout,
    operands: Sequence[tuple[TensorType, View]],
    *,
    is_image: bool,
) -> tuple[int, ...]:
    """The axes of a result from the outermost to the innermost, as its kernel stores it best.

    ``operands``: what the kernel reads and how it lies, in order; ``is_image``: whether a user
    reads the result as an image.
    """
    if is_image or (layout is ResultLayout.CHANNELS_LAST and result.rank >= IMAGE_RANK_MIN):
        return channels_last(result.rank)
    if layout is ResultLayout.HEADS_INSIDE:
        return 0, 2, 1, 3
    if layout is ResultLayout.LIKE_FIRST_OPERAND:
        first, view = operands[0]
        return storage_order(view, first.shape)
    row_major = tuple(range(result.rank))
    return (
        row_major
        if layout is ResultLayout.ROW_MAJOR
        else _order_of_operand(result, operands) or row_major
    )


def _order_of_operand(
    result: TensorType, operands: Sequence[tuple[TensorType, View]]
) -> tuple[int, ...]:
    """The order of the first operand of the result's shape that repeats no element; empty without
    one."""
    for operand, view in operands:
        if operand.shape == result.shape and not _repeats(operand, view):
            return storage_order(view, result.shape)
    return ()


def _repeats(operand: TensorType, view: View) -> bool:
    return any(
        size != 1 and stride == 0 for size, stride in zip(operand.shape, view.strides, strict=True)
    )
