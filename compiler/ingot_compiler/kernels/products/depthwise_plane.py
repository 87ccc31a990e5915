"""Depthwise convolutions of a row-major image into a row-major result: a plane at a time, pixels in
lanes.

In: a group anchored by ``conv`` with one input and one output channel per group. Out: its loop
program. Not done here: images whose channels lie together (``depthwise``).
"""

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.convolution import TAP_NAMES, ConvShape
from ingot_compiler.kernels.products.depthwise import is_depthwise
from ingot_compiler.kernels.tiles import BLOCK_CHAINS_MAX, MASKED_LOAD_BITS_MIN, choose_pixels
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape, flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.program import DepthwisePlane, LoopProgram

_FREE_ROWS_BITS = 256  # below it a block is straight code, and therefore short
_OPEN_ROWS_MAX = 7  # of rows whose number is not known: the last blocks overlap


_STRIDE_MAX = 2  # pixels further apart share no vectors
_RANKS = (3, 4)


def lower_depthwise_plane(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (image, channel); one spatial axis is a plane of one row."""
    anchored = AnchoredGroup(group)
    x, w, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    kernel, extents = _known_pair(conv.kernel), _pair(shape[2:])
    row_name, column_name = TAP_NAMES[:2]
    statement = DepthwisePlane(
        "y", "x", extents, _pair(x.type.shape[2:]), _known_pair(conv.strides),
        _known_pair(conv.dilations), _known_pair(conv.pads_before, 0), ((row_name, kernel[0]), (column_name, kernel[1])),
        anchored.number(0), "row", "column", _image_index(x), anchored.number(1), _weight_index(w),
        x.type.dtype, ACCUMULATOR, anchored.epilogue(_result_space(shape)),
        _rows_together(extents[0], kernel, target),
    )  # fmt: skip
    grain = grain_for(dim_product((*extents, *kernel)) // 8)
    return finish_program(anchored.buffers, (statement,), dim_product(shape[:2]), grain)


def _image_index(x: Operand) -> Dim:
    """Offset of (row, column) in the image and channel ``p``."""
    strides = x.view.strides
    index = x.view.offset + flat_offset(symbol("p"), x.type.shape[:2], strides[:2])
    index = index + symbol("column")
    return index if x.type.rank == 3 else index + dim_mul(strides[2], symbol("row"))


def _weight_index(w: Operand) -> Dim:
    """Offset of a kernel position, [kernel.., C], for the channel of unit ``p``."""
    row_name, column_name = TAP_NAMES[:2]
    *rows, columns, channels = w.view.strides
    index = w.view.offset + dim_mul(channels, symbol("p") % w.type.shape[-1])
    index = index + dim_mul(columns, symbol(column_name))
    return index + dim_mul(rows[0], symbol(row_name)) if rows else index


def _result_space(shape: Shape) -> Space:
    runs = (Run((0, 1), symbol("p")), Run((len(shape) - 1,), symbol("x")))
    return Space(shape, runs if len(shape) == 3 else (*runs, Run((2,), symbol("y"))))


def _rows_together(extent: Dim, kernel: tuple[int, int], target: KernelTarget) -> int:
    rows, columns = kernel
    together = choose_pixels(extent, (columns, rows), target)
    if not isinstance(extent, int):
        together = min(together, _OPEN_ROWS_MAX)
    if target.vector_bits >= _FREE_ROWS_BITS:
        return together
    return max(1, min(together, BLOCK_CHAINS_MAX // (rows * columns)))


def _pair(values: tuple[Dim, ...], missing: int = 1) -> tuple[Dim, Dim]:
    """Sizes of (rows, pixels); one spatial axis is that of the pixels."""
    return (values[0], values[1]) if len(values) == 2 else (missing, values[0])


def _known_pair(values: tuple[Dim, ...], missing: int = 1) -> tuple[int, int]:
    rows, pixels = _pair(values, missing)
    assert isinstance(rows, int)
    assert isinstance(pixels, int)
    return rows, pixels


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    del wishes
    serves = is_depthwise(facts) and _stays_row_major(facts, target)
    return Method(_NAME, weight_shape=facts.weights.shape) if serves else None


def _stays_row_major(facts: ProductFacts, target: KernelTarget) -> bool:
    """Whether a depthwise convolution runs on planes: the image lies row-major, the result becomes
    an output, and every other pixel at most is skipped. Planes of unknown sizes need masks."""
    node, x, view = facts.node, facts.x, facts.x_view
    if view is None or x.rank not in _RANKS or x.dtype not in ("f32", "f64"):
        return False
    sizes = (*facts.weights.shape[2:], *node.dims("pads_before"))
    if target.vector_bits < MASKED_LOAD_BITS_MIN:
        sizes = (*sizes, *x.shape[2:], *facts.result.shape[2:])
    dense = view.strides[-1] == 1 and x.shape[1] != 1
    return (
        all(isinstance(size, int) for size in sizes)
        and dense
        and node.ints("strides")[-1] <= _STRIDE_MAX
        and facts.becomes_output
    )


_NAME = "depthwise_plane"
DEPTHWISE_PLANE = Algorithm(
    (Kind(_NAME, one_kernel(lower_depthwise_plane), ResultLayout.ROW_MAJOR),), _offer
)
