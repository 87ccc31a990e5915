"""Matrix products as contractions.

In: a group anchored by ``matmul``. Out: its loop programs. Not done here: their tiles and units
(``contraction``).
"""

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul, dim_product, symbol
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.kernels.anchored_group import AnchoredGroup
from ingot_compiler.kernels.products.algorithm import (
    BYTE_PANELS,
    ONE_COLUMN,
    PANELS,
    TURNED,
    Algorithm,
    ProductFacts,
    Wishes,
    widens_bytes,
)
from ingot_compiler.kernels.products.contraction import (
    Panels,
    PitchedRows,
    Product,
    TurnedColumns,
    contraction_program,
)
from ingot_compiler.kernels.products.parts import parts_of_matrix
from ingot_compiler.kernels.products.product_of_parts import lower_parts
from ingot_compiler.kernels.products.rounded import BF16_OF_MATRIX, rounded_matrix
from ingot_compiler.kernels.products.strassen import STRASSEN, offer_matrix
from ingot_compiler.kernels.products.tuned import PARTS_OF_MATRIX
from ingot_compiler.kernels.tiles import factors_together
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.views import Shape, flat_offset, lies_as_one
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, LowerGroup, ResultLayout

_PANEL_ROWS_MIN = 8  # of A, below which B is read in place
_ROWS_OF_COLUMN_MIN = 8  # by one column, so that most lanes have one
_ONE_ROW_ELEMENTS_MIN = 1 << 14  # of B: a smaller product is not worth two kernels


def lower_matmul(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel; where the number of rows is open and B is large, one for a single row too, which
    computes no rows that are not there."""
    anchored = AnchoredGroup(group)
    product = _product(anchored)
    kernel = one_launch(contraction_program(anchored, target, product))
    if isinstance(product.rows, int):
        return kernel
    elements = typical(dim_mul(product.total_depth, product.columns))
    if elements >= _ONE_ROW_ELEMENTS_MIN:
        one_row = contraction_program(AnchoredGroup(group), target, replace(product, rows=1))
        kernel = choose(product.rows - 1, kernel, one_launch(one_row))
    return kernel


def lower_matmul_parts(group: Group, target: KernelTarget) -> LoweredGroup:
    """A launch that splits A, one that says whether that is near enough, the products."""
    return lower_parts(group, target, _product(AnchoredGroup(group)))


def lower_matmul_strassen(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel whose method says which tiles; fewer rows than these gain from, where the number
    is open and may be so small, have the kernels of a direct product."""
    anchored = AnchoredGroup(group)
    shape, product = anchored.method.strassen, _product(anchored)
    assert shape
    kernel = one_launch(contraction_program(anchored, target, product, strassen=shape))
    if shape.serves_all(product.rows):
        return kernel
    has_enough = dim_floordiv(product.rows, shape.rows_min)
    return choose(has_enough, kernel, lower_matmul(group, target))


def _product(anchored: AnchoredGroup) -> Product:
    """A constant 2-D B makes one product of all rows; else one product per batch, of a B in panels
    or in rows."""
    a, b, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    if anchored.method.factor == ONE_COLUMN:
        return _products_by_column(a, b, shape)
    if anchored.method.factor == PANELS:
        return _one_product(a, factors_together(*anchored.factors), shape)
    if anchored.method.factor == BYTE_PANELS:
        panels = Panels(factors_together(a.type.dtype, b.type.dtype))
        return _product_per_batch(a, panels, shape)
    first, (row_pitch, column_pitch) = _batch_offset(b, shape[:-2]), b.view.strides[-2:]
    if anchored.method.factor == TURNED:
        return _product_per_batch(a, TurnedColumns(first, column_pitch), shape)
    return _product_per_batch(a, PitchedRows(first, row_pitch), shape)


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


def _product_per_batch(
    a: Operand, b: Panels | PitchedRows | TurnedColumns, shape: Shape
) -> Product:
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


def _products_by_column(a: Operand, b: Operand, shape: Shape) -> Product:
    """The column is a row, times A in columns: a result of one column would leave all lanes but one
    empty. One product, where all rows of A lie evenly apart and B is theirs."""
    last, axes = len(shape) - 1, [axis for axis, size in enumerate(shape[:-1]) if size != 1]
    is_one = b.type.rank == 2 and lies_as_one(a.view, a.type.shape, axes)
    batch, rows = ((), axes) if is_one else (shape[:-2], [last - 1])
    # A may have fewer axes than the result.
    pitch = a.view.strides[rows[-1] - len(shape)] if rows else 0
    first = a.view.offset if is_one else _batch_offset(a, batch)
    return Product(
        outer=dim_product(batch),
        rows=1,
        columns=dim_product(tuple(shape[axis] for axis in rows)),
        taps=(),
        depth=a.type.shape[-1],
        a_index=_batch_offset(b, batch) + dim_mul(symbol("k"), b.view.strides[-2]),
        b=TurnedColumns(first, pitch),
        axes=(tuple(range(len(batch))), (last,), tuple(rows)),
        factors=(1, 0),
    )


def _batch_offset(operand: Operand, batch: Shape) -> Dim:
    """Offset of product ``g`` in an operand whose batch axes broadcast to ``batch``."""
    own = zip(operand.type.shape[:-2], operand.view.strides[:-2], strict=True)
    strides: list[Dim] = [0 if size == 1 else stride for size, stride in own]
    missing: list[Dim] = [0] * (len(batch) - len(strides))
    return operand.view.offset + flat_offset(symbol("g"), batch, missing + strides)


def wants_panels(facts: ProductFacts) -> bool:
    """Whether a product's B of bytes, made at run time, is worth panels: one for each product, of
    a depth that is known, that enough rows of A read."""
    a, b = facts.x, facts.weights
    depth, rows = b.shape[-2], a.shape[-2]
    if not {a.dtype, b.dtype} <= BYTES or not isinstance(depth, int):
        return False
    is_read_often = not isinstance(rows, int) or rows >= _PANEL_ROWS_MIN
    return is_read_often and b.shape[:-2] == facts.result.shape[:-2]


def stays_in_columns(facts: ProductFacts, target: KernelTarget) -> bool:
    """Whether a second factor that lies along the depth is read so: what a unit turns of it stays
    in its cache, where a copy in rows does not."""
    view = facts.w_view
    if view is None or {facts.x.dtype, facts.weights.dtype} != {"f32"} or target.team_units > 1:
        return False
    along, apart = view.strides[-2:]
    return along == 1 and apart != 1


def has_one_column(facts: ProductFacts, target: KernelTarget) -> bool:
    """Whether many rows are multiplied by a column."""
    are_f32 = {facts.x.dtype, facts.weights.dtype} == {"f32"}
    if not are_f32 or facts.weights.shape[-1] != 1 or target.team_units > 1:
        return False
    rows = facts.result.shape[:-1] if facts.weights.rank == 2 else facts.result.shape[-2:-1]
    return typical(dim_product(rows)) >= _ROWS_OF_COLUMN_MIN


def _direct(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method:
    """A matrix that the compiler knows is in panels, and one of bytes that is read often; one in
    columns may stay so, and a column does."""
    del wishes
    if has_one_column(facts, target):
        return Method("matmul", ONE_COLUMN)
    if facts.has_constant_weights and facts.weights.rank == 2:
        return Method("matmul", PANELS, has_addends=widens_bytes(facts, target))
    if stays_in_columns(facts, target):
        return Method("matmul", TURNED)
    return Method("matmul", BYTE_PANELS if wants_panels(facts) else "")


def _kind(name: str, lower: LowerGroup) -> Kind:
    return Kind(name, lower, ResultLayout.ROW_MAJOR)


MATMUL = Algorithm((_kind("matmul", lower_matmul),), _direct)
MATMUL_STRASSEN = Algorithm((_kind(STRASSEN, lower_matmul_strassen),), offer_matrix)
"""Seven products of halves for eight."""
MATMUL_BF16 = Algorithm((_kind(BF16_OF_MATRIX, lower_matmul),), rounded_matrix)
"""The direct loops over factors in bf16: the name tells it."""
MATMUL_PARTS = Algorithm(
    tuple(_kind(name, lower_matmul_parts) for name in PARTS_OF_MATRIX.values()), parts_of_matrix
)
"""Products of parts of bf16; the name tells how many there are."""
