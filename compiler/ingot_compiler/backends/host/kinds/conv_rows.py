"""Convolutions of a row-major image into few channels, row-major: rows of pixels in lanes.

In: a group anchored by ``conv`` of one group, whose steps along the last axis are 1; zeros around
the image where it has pads; weights [O, kernel.., C]. Out: its loop program. Not done here: images
whose channels lie together (``conv``), which convolutions run so (``choose_kind``).

Each row of the image is a product: weights by pixels. In lanes of channels a result of few of them
leaves most lanes empty, and the image is turned before.
"""

from ingot_compiler.backends.host.anchored_group import AnchoredGroup
from ingot_compiler.backends.host.contraction import PitchedRows, Product, contraction_program
from ingot_compiler.backends.host.convolution import ConvShape
from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, substitute, symbol
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.views import flat_offset


def lower_conv_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """The weights are A, the image is B, in place."""
    anchored = AnchoredGroup(group)
    x, w, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.node.dims("weight_shape"))
    taps, depth, tap_offset = conv.reduction(x)
    last = len(shape) - 1
    outer = (shape[0], *shape[2:-1])
    row = flat_offset(symbol("g"), outer, conv.pixel_strides(x)[:-1])
    position: Dim = symbol("k")
    inner = depth
    for name, extent in reversed(taps):
        position = position + dim_mul(symbol(name), inner)
        inner = dim_mul(inner, extent)
    product = Product(
        outer=dim_product(outer),
        rows=shape[1],
        columns=shape[-1],
        taps=taps,
        depth=depth,
        a_index=w.view.offset + dim_mul(symbol("row"), inner) + position,
        b=PitchedRows(conv.origin(x) + row + substitute(tap_offset, {"k": 0}), x.view.strides[1]),
        axes=((0, *range(2, last)), (1,), (last,)),
        factors=(1, 0),
    )
    return contraction_program(anchored, target, product)


CONV_ROWS = Kind("conv_rows", one_kernel(lower_conv_rows), ResultLayout.ROW_MAJOR)
