"""The geometry of a convolution: where its kernel positions lie in a channels-last image with a
zero halo.

In: a conv node and its stored operand. Out: taps, depth and offsets for contraction and depthwise
kernels. Not done here: which buffer gets a halo (``fuse``). Source: ONNX Conv-22.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_mul, substitute, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.fused import Operand
from ingot_runtime.lazy_dataclass import dataclass

TAP_NAMES = ("tap0", "tap1", "tap2", "tap3")


@dataclass(frozen=True, slots=True)
class ConvShape:
    """Kernel sizes, strides, dilations and leading pads per spatial axis; channels per group."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_before: tuple[Dim, ...]
    groups: int
    channels_per_group: Dim

    @staticmethod
    def of(node: Node, x: Operand, weight_shape: tuple[Dim, ...]) -> ConvShape:
        """Read a conv node; ``weight_shape`` is [O, C/groups, kernel..]."""
        kernel = tuple(size for size in weight_shape[2:] if isinstance(size, int))
        assert len(kernel) == len(x.type.shape) - 2
        return ConvShape(
            kernel,
            node.ints("strides"),
            node.ints("dilations"),
            node.dims("pads_before"),
            node.integer("groups"),
            weight_shape[1],
        )

    def origin(self, x: Operand) -> Dim:
        """Offset of the first kernel position of the first output: inside the halo."""
        offset = x.view.offset
        for pad, stride in zip(self.pads_before, x.view.strides[2:], strict=True):
            offset = offset - dim_mul(pad, stride)
        return offset

    def pixel_strides(self, x: Operand) -> tuple[Dim, ...]:
        """Distances in the image of neighbours in the result, along images and spatial axes."""
        spatial = zip(self.strides, x.view.strides[2:], strict=True)
        return (x.view.strides[0], *(dim_mul(step, stride) for step, stride in spatial))

    def tap_offset(self, x: Operand) -> Dim:
        """Offset of kernel position (tap0, tap1, ..)."""
        offset: Dim = 0
        for axis in range(len(self.kernel)):
            step = dim_mul(self.dilations[axis], x.view.strides[2 + axis])
            offset = offset + dim_mul(step, symbol(TAP_NAMES[axis]))
        return offset

    def reduction(self, x: Operand) -> tuple[tuple[tuple[str, Dim], ...], Dim, Dim]:
        """(taps, depth, offset over taps and ``k``): the last kernel axis joins the channels where
        they lie as one."""
        taps: list[tuple[str, Dim]] = list(zip(TAP_NAMES, self.kernel, strict=False))
        depth = self.channels_per_group
        offset = self.tap_offset(x) + dim_mul(symbol("k"), x.view.strides[1])
        joins = x.view.strides[-1] == depth and self.dilations[-1] == 1 and x.view.strides[1] == 1
        if joins and self.groups == 1:
            name, extent = taps.pop()
            offset = substitute(offset, {name: 0})
            depth = dim_mul(extent, depth)
        kept = [(name, extent) for name, extent in taps if extent != 1]
        offset = substitute(offset, {name: 0 for name, extent in taps if extent == 1})
        return tuple(kept), depth, offset
