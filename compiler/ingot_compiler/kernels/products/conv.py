"""Convolutions as contractions: output pixels by output channels, over (kernel position, input
channel).

In: a group anchored by ``conv``, channels-last, zero halo in the buffer. Out: its loop program. Not
done here: its tiles and units (``contraction``), depthwise (``depthwise``).
"""

from dataclasses import replace
from functools import partial

from ingot_compiler.ir.dims import dim_floordiv, dim_mul, dim_product, symbol
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.anchored_group import AnchoredGroup
from ingot_compiler.kernels.products.algorithm import PANELS, Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.contraction import (
    Panels,
    PitchedRows,
    Product,
    TapSpans,
    contraction_program,
)
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.parts import parts_of_convolution
from ingot_compiler.kernels.products.product_of_parts import lower_parts
from ingot_compiler.kernels.products.rounded import BF16_OF_CONV, rounded_convolution
from ingot_compiler.kernels.products.strassen import offer_convolution
from ingot_compiler.kernels.products.taps_inside import skips_taps, spans_inside
from ingot_compiler.kernels.products.tuned import DIRECT, PARTS_OF_CONV
from ingot_compiler.kernels.products.tuned import STRASSEN as STRASSEN_OF_CONV
from ingot_compiler.kernels.row_pitch import may_share_address
from ingot_compiler.kernels.tiles import factors_together, lanes_of, lanes_of_rest, sum_dtype
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.views import Shape, flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, LowerGroup, ResultLayout, one_kernel
from ingot_compiler.lowering.loops.program import LoopProgram

_SHORT_SUM_MAX = 64  # products
_INDEX_SIZE_MAX = (
    512  # pads that follow from open sizes are long, and each unit finds its row in them
)


def lower_conv(group: Group, target: KernelTarget) -> LoopProgram:
    """``conv``: one product per group; the taps are kernel positions."""
    anchored = AnchoredGroup(group)
    return contraction_program(anchored, target, _product(anchored, target))


def lower_conv_strassen(group: Group, target: KernelTarget) -> LoopProgram:
    """One product of all pixels, whose method says which tiles."""
    anchored = AnchoredGroup(group)
    product = _one_product(anchored, target)
    return contraction_program(anchored, target, product, strassen=anchored.method.strassen)


def lower_conv_parts(group: Group, target: KernelTarget) -> LoweredGroup:
    """A launch that splits the image, one that says whether that is near enough, the products: of
    all pixels and taps, for rows of their own would fill fewer tiles."""
    return lower_parts(group, target, _one_product(AnchoredGroup(group), target))


def _product(anchored: AnchoredGroup, target: KernelTarget) -> Product:
    x, w, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    # The shape as the graph has it: the operand is laid out anew.
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    taps, depth, _ = conv.reduction(x)
    together, is_packed = factors_together(*anchored.factors), anchored.method.factor == PANELS
    if is_packed and skips_taps(conv, x.type, shape):
        names = [name for name, _ in taps]
        spans = partial(spans_inside, conv, x.type.shape, shape, names)
        return _rows_apart(conv, x, shape, together, spans)
    if is_packed and _gains_rows(conv, x, shape, together, target):
        apart = _rows_apart(conv, x, shape, together)
        if isinstance(apart.a_index, int) or apart.a_index.size <= _INDEX_SIZE_MAX:
            return apart
    product = _one_product(anchored, target)
    if is_packed:
        return product
    pitch = w.view.strides[-2]
    first = w.view.offset + dim_mul(symbol("g"), w.view.strides[0])
    return replace(
        product, b=PitchedRows(first + dim_mul(product.tap, dim_mul(depth, pitch)), pitch)
    )


def _one_product(anchored: AnchoredGroup, target: KernelTarget) -> Product:
    """A product of all pixels of all images, one for each group."""
    x, shape = anchored.operand(0), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    taps, depth, tap_offset = conv.reduction(x)
    together = factors_together(*anchored.factors)
    channels = dim_floordiv(shape[1], conv.groups)
    rows = (shape[0], *shape[2:])
    row_offset = flat_offset(symbol("row"), rows, conv.pixel_strides(x))
    g = symbol("g") if conv.groups != 1 else 0
    group_offset = dim_mul(g, conv.channels_per_group)
    has_runs = may_share_address(target) and coefficient(row_offset, "row") is None
    return Product(
        outer=conv.groups,
        rows=dim_product(rows),
        columns=channels,
        taps=taps,
        depth=depth,
        a_index=conv.origin(x) + group_offset + row_offset + tap_offset,
        b=Panels(together),
        axes=((), (0, *range(2, len(shape))), (1,)),
        column_shift=dim_mul(g, channels),
        run=shape[-1] if has_runs else 0,
    )


def _gains_rows(
    conv: ConvShape, x: Operand, shape: Shape, together: int, target: KernelTarget
) -> bool:
    """Whether rows of open width are better summed one by one, although their last tiles are not
    whole: where finding a pixel takes about as long as what is computed there, as in images of few
    channels, which are wide; where all sums are half vectors, which rows with one address have."""
    channels = shape[1]
    if isinstance(shape[-1], int) or conv.groups != 1 or target.team_units > 1:
        return False
    products = dim_mul(dim_product(conv.kernel), conv.channels_per_group)
    if isinstance(products, int) and products <= _SHORT_SUM_MAX:
        return True
    dtype = sum_dtype(x.type.dtype)
    lanes = lanes_of(dtype, target)
    if not isinstance(channels, int) or channels >= lanes:
        return False
    return lanes_of_rest(channels, dtype, together, target) < lanes


def _rows_apart(
    conv: ConvShape, x: Operand, shape: Shape, together: int, spans: TapSpans | None = None
) -> Product:
    """A product for each row of the result, perhaps of the taps alone that are inside of the
    image."""
    taps, depth, tap_offset = conv.reduction(x)
    last = len(shape) - 1
    outer, strides = (shape[0], *shape[2:-1]), conv.pixel_strides(x)
    offset = flat_offset(symbol("g"), outer, strides[:-1]) + dim_mul(symbol("row"), strides[-1])
    return Product(
        outer=dim_product(outer),
        rows=shape[-1],
        columns=shape[1],
        taps=taps,
        depth=depth,
        a_index=conv.origin(x) + offset + tap_offset,
        b=Panels(together),
        axes=((0, *range(2, last)), (last,), (1,)),
        has_one_b=True,
        spans=spans,
    )


def _direct(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method:
    del wishes, target
    factor = PANELS if facts.has_constant_weights else ""
    return Method(DIRECT, factor, facts.weights.shape)


def _kind(name: str, lower: LowerGroup) -> Kind:
    return Kind(name, lower, ResultLayout.CHANNELS_LAST)


CONV = Algorithm((_kind(DIRECT, one_kernel(lower_conv)),), _direct)
CONV_STRASSEN = Algorithm(
    (_kind(STRASSEN_OF_CONV, one_kernel(lower_conv_strassen)),), offer_convolution, True
)
"""Seven products of halves for eight."""
CONV_BF16 = Algorithm((_kind(BF16_OF_CONV, one_kernel(lower_conv)),), rounded_convolution)
"""The direct loops over factors in bf16: the name tells it."""
CONV_PARTS = Algorithm(
    tuple(_kind(name, lower_conv_parts) for name in PARTS_OF_CONV.values()),
    parts_of_convolution,
    True,
)
"""Products of parts of bf16; the name tells how many there are."""
