"""The storage order that a value and the ops around it prefer: pure functions of the graph, the
kind and the operands.

In: a graph and what its ops ask for; a result and what its kernel reads. Out: orders of axes,
haloes. Not done here: buffers (``storage``), copies into another layout (``relayout``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ingot_compiler.ir.dims import Dim, dim_max
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.views import storage_order
from ingot_compiler.lowering.kinds.kind import ResultLayout
from ingot_runtime.lazy_dataclass import dataclass

IMAGE_RANK_MIN = 3


@dataclass(frozen=True, slots=True)
class Halo:
    """Elements (before, after) per axis around an image, all of them ``value``."""

    before: tuple[Dim, ...]
    after: tuple[Dim, ...]
    value: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it has no element."""
        return not any(self.before) and not any(self.after)

    def joined(self, other: Halo) -> Halo:
        """Room for both; of two that differ in their value this one, for an image has one value
        around it."""
        if other.value != self.value or other.is_empty:
            return self
        before = tuple(map(dim_max, self.before, other.before))
        return Halo(before, tuple(map(dim_max, self.after, other.after)), self.value)


@dataclass(frozen=True, slots=True)
class ImageDemands:
    """``channels_last``: values that an op reads as images; ``halos``: what the convolutions of a
    value need around it, where anything."""

    channels_last: frozenset[int]
    halos: Mapping[int, Halo]


def image_demands(readers: Iterable[tuple[Node, bool]]) -> ImageDemands:
    """What the ops that read images ask of their first operands; ``readers``: (node, whether it
    reads what stands around the image)."""
    halos: dict[int, Halo] = {}
    images: set[int] = set()
    for node, reads_halo in readers:
        value = node.operands[0]
        images.add(value)
        if reads_halo:
            own = node_halo(node)
            if not own.is_empty:
                halos[value] = halos[value].joined(own) if value in halos else own
    return ImageDemands(frozenset(images), halos)


def node_halo(node: Node) -> Halo:
    """What a convolution reads around its image: its pads, none along batch and channels."""
    value = node.integer("pad_value") if "pad_value" in node.table else 0
    return Halo((0, 0, *node.dims("pads_before")), (0, 0, *node.dims("pads_after")), value)


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
