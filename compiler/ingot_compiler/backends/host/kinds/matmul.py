"""Matrix products as contractions.

In: a group anchored by ``matmul``. Out: its loop programs. Not done here: their tiles and units
(``contraction``).
"""

from collections.abc import Mapping
from dataclasses import replace

from ingot_compiler.backends.host.anchored_group import AnchoredGroup
from ingot_compiler.backends.host.choose_strassen import STRASSEN, StrassenShape
from ingot_compiler.backends.host.contraction import (
    Panels,
    PitchedRows,
    Product,
    contraction_program,
)
from ingot_compiler.backends.host.product_of_parts import lower_parts
from ingot_compiler.backends.host.tiles import factors_together
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul, dim_product, symbol
from ingot_compiler.ir.typical import typical
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.views import Shape, flat_offset

_ONE_ROW_ELEMENTS_MIN = 1 << 14  # of B: a smaller product is not worth two kernels


def lower_matmul(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel; where the number of rows is open and B is large, one for a single row too, which
    computes no rows that are not there."""
    product = _product(AnchoredGroup(group))
    kernel = one_launch(contraction_program(AnchoredGroup(group), target, product))
    elements = typical(dim_mul(product.total_depth, product.columns))
    if isinstance(product.rows, int) or elements < _ONE_ROW_ELEMENTS_MIN:
        return kernel
    one_row = contraction_program(AnchoredGroup(group), target, replace(product, rows=1))
    return choose(product.rows - 1, kernel, one_launch(one_row))


def lower_matmul_parts(group: Group, target: KernelTarget) -> LoweredGroup:
    """A launch that splits A, one that says whether that is near enough, the products."""
    return lower_parts(group, target, _product(AnchoredGroup(group)))


def lower_matmul_strassen(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel whose node says which tiles; fewer rows than these gain from, where the number is
    open and may be so small, have the kernels of a direct product."""
    anchored = AnchoredGroup(group)
    shape, product = StrassenShape.of(anchored.node.ints("strassen")), _product(anchored)
    kernel = one_launch(contraction_program(anchored, target, product, strassen=shape))
    if shape.serves_all(product.rows):
        return kernel
    has_enough = dim_floordiv(product.rows, shape.rows_min)
    return choose(has_enough, kernel, lower_matmul(group, target))


def _product(anchored: AnchoredGroup) -> Product:
    """A constant 2-D B makes one product of all rows; else one product per batch, of a B in panels
    or in rows."""
    a, b, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    if "packed" in anchored.node.table:
        return _one_product(a, factors_together(*anchored.factors), shape)
    if "panels" in anchored.node.table:
        panels = Panels(factors_together(a.type.dtype, b.type.dtype))
        return _product_per_batch(a, panels, shape)
    rows = PitchedRows(_batch_offset(b, shape[:-2]), b.view.strides[-2])
    return _product_per_batch(a, rows, shape)


def _one_product(a: Operand, together: int, shape: Shape) -> Product:
    assert a.type.rank == len(shape)
    depth, last = a.type.shape[-1], len(shape) - 1
    rows, strides = a.type.shape[:-1], a.view.strides
    a_row = a.view.offset + flat_offset(symbol("row"), rows, strides[:-1])
    return Product(
        outer=1,
        rows=dim_product(rows),
        columns=shape[-1],
        taps=(),
        depth=depth,
        a_index=a_row + dim_mul(symbol("k"), strides[-1]),
        b=Panels(together),
        axes=((), tuple(range(last)), (last,)),
    )


def _product_per_batch(a: Operand, b: Panels | PitchedRows, shape: Shape) -> Product:
    batch, last = shape[:-2], len(shape) - 1
    row_stride, depth_stride = a.view.strides[-2:]
    a_row = _batch_offset(a, batch) + dim_mul(symbol("row"), row_stride)
    return Product(
        outer=dim_product(batch),
        rows=shape[-2],
        columns=shape[-1],
        taps=(),
        depth=a.type.shape[-1],
        a_index=a_row + dim_mul(symbol("k"), depth_stride),
        b=b,
        axes=(tuple(range(last - 1)), (last - 1,), (last,)),
    )


def _batch_offset(operand: Operand, batch: Shape) -> Dim:
    """Offset of product ``g`` in an operand whose batch axes broadcast to ``batch``."""
    own = zip(operand.type.shape[:-2], operand.view.strides[:-2], strict=True)
    strides: list[Dim] = [0 if size == 1 else stride for size, stride in own]
    missing: list[Dim] = [0] * (len(batch) - len(strides))
    return operand.view.offset + flat_offset(symbol("g"), batch, missing + strides)


MATMUL = Kind("matmul", lower_matmul, ResultLayout.ROW_MAJOR)
MATMUL_STRASSEN = Kind(STRASSEN, lower_matmul_strassen, ResultLayout.ROW_MAJOR)
"""Seven products of halves for eight."""
MATMUL_BF16 = Kind("matmul_bf16", lower_matmul, ResultLayout.ROW_MAJOR)
"""The same loops over factors in bf16: the name tells it."""
MATMUL_PARTS: Mapping[int, Kind] = {
    count: Kind(f"matmul_bf16x{products}", lower_matmul_parts, ResultLayout.ROW_MAJOR)
    for count, products in ((2, 3), (3, 6))
}
"""By the number of parts of bf16 of a factor; the name tells how many products there are."""
