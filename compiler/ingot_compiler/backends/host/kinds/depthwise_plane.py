"""Depthwise convolutions of a row-major image into a row-major result: a plane at a time, pixels in
lanes.

In: a group anchored by ``conv`` with one input and one output channel per group; sizes of planes
are known. Out: its loop program. Not done here: images whose channels lie together (``depthwise``).
"""

from ingot_compiler.backends.host.convolution import TAP_NAMES, ConvShape
from ingot_compiler.backends.host.kinds.contraction import anchored_epilogue
from ingot_compiler.backends.host.tiles import BLOCK_CHAINS_MAX, choose_pixels
from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import DepthwisePlane, LoopProgram
from ingot_compiler.lowering.space import Run, Space
from ingot_compiler.lowering.views import flat_offset

_FREE_ROWS_BITS = 256  # below it a block is straight code, and therefore short


def lower_depthwise_plane(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (image, channel); one spatial axis is a plane of one row."""
    anchor = group.nodes[group.anchor]
    operands = {operand.value: operand for operand in group.operands}
    x, w = operands[anchor.operands[0]], operands[anchor.operands[1]]
    flat = x.type.rank == 3
    conv = ConvShape.of(anchor, x, (w.type.shape[-1], 1, *w.type.shape[:-1]))
    shape = dict(group.types)[anchor.results[0]].shape
    kernel = _pair(conv.kernel)
    names = TAP_NAMES[:2]
    a_index = (
        x.view.offset + flat_offset(symbol("p"), shape[:2], x.view.strides[:2]) + symbol("column")
    )
    w_index = w.view.offset + dim_mul(w.view.strides[-1], symbol("p") % shape[1])
    w_index = w_index + dim_mul(w.view.strides[-2], symbol(names[1]))
    axes: tuple[Run, ...] = (Run((0, 1), symbol("p")), Run((len(shape) - 1,), symbol("x")))
    if not flat:
        a_index = a_index + dim_mul(x.view.strides[2], symbol("row"))
        w_index = w_index + dim_mul(w.view.strides[0], symbol(names[0]))
        axes = (*axes, Run((2,), symbol("y")))
    buffers = GroupBuffers(group)
    extents = _pair(shape[2:])
    together = choose_pixels(extents[0], (kernel[1], kernel[0]), target)
    if target.vector_bits < _FREE_ROWS_BITS:
        together = max(1, min(together, BLOCK_CHAINS_MAX // (kernel[0] * kernel[1])))
    statement = DepthwisePlane(
        "y", "x", extents, _pair(x.type.shape[2:]), _pair(conv.strides), _pair(conv.dilations),
        _pair(conv.pads_before, 0), ((names[0], kernel[0]), (names[1], kernel[1])),
        buffers.number(x), "row", "column", a_index, buffers.number(w), w_index, x.type.dtype,
        "acc", anchored_epilogue(group, buffers, Space(shape, axes)), together,
    )  # fmt: skip
    work = dim_product((*extents, *kernel))
    return finish_program(buffers, (statement,), dim_product(shape[:2]), grain_for(work // 8))


def _pair(values: tuple[Dim, ...], missing: int = 1) -> tuple[int, int]:
    """Known sizes of (rows, pixels); one spatial axis is that of the pixels."""
    known = tuple(value for value in values if isinstance(value, int))
    assert len(known) == len(values)
    return (known[0], known[1]) if len(known) == 2 else (missing, known[0])


DEPTHWISE_PLANE = Kind("depthwise_plane", one_kernel(lower_depthwise_plane), ResultLayout.ROW_MAJOR)
